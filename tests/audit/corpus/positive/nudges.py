"""A counter of nudges, by any name, counts replies without tool calls."""


def pursue(model, history, registry, limit=2):
    nudges = 0
    for _ in range(50):
        answer = model.complete(history)
        history.append(answer)
        if answer.tool_calls:
            history.extend(registry.run_all(answer.tool_calls))
        else:
            nudges += 1
            history.append({"role": "user", "content": "Go on."})
            if nudges > limit:
                return "completed"  # expect: idle-count
    raise RuntimeError("too many turns")
