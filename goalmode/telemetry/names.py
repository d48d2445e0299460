"""Names of operations and attributes.

Those of OpenTelemetry are its semantic conventions for generative AI, which are still in development: as of
opentelemetry-semantic-conventions 0.66b2, and strings here, so that a newer version of it renames nothing.
"""

INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

OTHER = "_OTHER"
"""The conventions' word for an error of which nothing more is known."""

WAKEUP = "goalmode.wakeup.id"
FENCE = "goalmode.fence"
EXIT_REASON = "goalmode.exit_reason"
TURN = "goalmode.turn"
PURPOSE = "goalmode.purpose"
