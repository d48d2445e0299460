"""contract whole, questions, long-term memory, cost

Revision: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")

_ZEROS = (
    ("goals", "spent_cost_micro"),
    ("goals", "stretch_from"),
    ("wakeups", "reserved_cost"),
    ("wakeups", "settlement_attempts"),
    ("turns", "cost_micro"),
)
_NULLABLE = (
    ("requirements", "file", _JSON),
    ("requirements", "basis", sa.Text()),
    ("wakeups", "pending_exit", _JSON),
    ("wakeups", "progress_by", _JSON),
    ("work_items", "rests_on", _JSON),
    ("turns", "price", _JSON),
    ("inbox", "question", sa.BigInteger()),
)
_WORDS = (
    ("goals", "settlement", "none", ("none", "started", "done", "failed", "skipped")),
    ("requirements", "kind", "evidence", ("command", "file", "human", "evidence")),
)


def upgrade() -> None:
    for table, column in _ZEROS:
        op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    for table, column, kind in _NULLABLE:
        op.add_column(table, sa.Column(column, kind, nullable=True))
    for table, column, first, words in _WORDS:
        # In one statement with its CHECK, which SQLite could not add afterwards without making the table anew.
        listed = ", ".join(f"'{word}'" for word in words)
        op.execute(
            f"ALTER TABLE {table} ADD COLUMN {column} VARCHAR(24) DEFAULT '{first}' NOT NULL"
            f" CONSTRAINT ck_{table}_{column} CHECK ({column} IN ({listed}))"
        )
    op.execute("UPDATE requirements SET kind = 'command' WHERE command IS NOT NULL")
    op.create_table(
        "protected_files",
        sa.Column("goal", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("named_by", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["goal"], ["goals.id"], name=op.f("fk_protected_files_goal_goals"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("goal", "position", name=op.f("pk_protected_files")),
    )
    op.create_table(
        "questions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("goal", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("wakeup", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("options", _JSON, nullable=False),
        sa.Column("default", sa.Text(), nullable=False),
        sa.Column("default_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('input', 'human', 'sign_off')", name=op.f("ck_questions_kind")),
        sa.CheckConstraint(
            "status IN ('open', 'answered', 'withdrawn')", name=op.f("ck_questions_status")
        ),
        sa.ForeignKeyConstraint(
            ["goal"], ["goals.id"], name=op.f("fk_questions_goal_goals"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
        sa.UniqueConstraint("goal", "number", name=op.f("uq_questions_goal_number")),
    )
    op.create_index(
        "ix_questions_due",
        "questions",
        ["default_at"],
        sqlite_where=sa.text("status = 'open'"),
        postgresql_where=sa.text("status = 'open'"),
    )
    _ask_again()
    op.create_table(
        "memories",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("goal", sa.Text(), nullable=False),
        sa.Column("wakeup", sa.BigInteger(), nullable=False),
        sa.Column("turn", sa.BigInteger(), nullable=False),
        sa.Column("superseded_by", sa.BigInteger(), nullable=True),
        sa.Column("forgotten_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "kind IN ('environment', 'preference', 'experience')", name=op.f("ck_memories_kind")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memories")),
    )
    op.create_index("ix_memories_workspace", "memories", ["workspace", "id"])
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE memories_fts USING fts5(words)")
        return
    op.execute(
        "CREATE TABLE memories_fts (rowid BIGINT PRIMARY KEY REFERENCES memories ON DELETE CASCADE,"
        " words TSVECTOR NOT NULL)"
    )
    op.execute("CREATE INDEX ix_memories_fts_words ON memories_fts USING gin (words)")
    # Public ids are found by their beginnings, whatever the server's locale thinks of the order of letters.
    op.execute('ALTER TABLE goals ALTER COLUMN uid TYPE VARCHAR(32) COLLATE "C"')


def _ask_again() -> None:
    """Goals that wait for the user already get the question that their last wakeup ended with."""
    none = "'[]'" if op.get_bind().dialect.name == "sqlite" else "'[]'::jsonb"
    op.execute(
        "INSERT INTO questions (goal, number, wakeup, kind, status, text, why, options, \"default\", session_id,"
        " answer, answered_by, asked_at)"
        " SELECT g.id, 1, w.seq, CASE w.exit_reason WHEN 'WAITING_HUMAN' THEN 'human' ELSE 'input' END, 'open',"
        f" w.exit_detail, '', {none}, '', '', '', '', w.ended_at"
        " FROM goals g JOIN wakeups w ON w.goal = g.id"
        " WHERE g.status = 'WAITING_USER' AND w.exit_reason IN ('NEEDS_USER_INPUT', 'WAITING_HUMAN')"
        " AND w.seq = (SELECT max(seq) FROM wakeups WHERE goal = g.id)"
    )


def downgrade() -> None:
    op.execute("DROP TABLE memories_fts")
    for table in ("memories", "questions", "protected_files"):
        op.drop_table(table)
    for table, column, *_ in (*_WORDS, *_NULLABLE, *_ZEROS):
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
