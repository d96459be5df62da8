package record_test

import "testing"

// registers has a program register hooks at some steps.
const registers = `
import sys, types
from memdiag import _holders

def asked(register):
    hooks = sys.modules["torch.utils.hooks"] = types.SimpleNamespace(RemovableHandle=types.SimpleNamespace(next_id=5))
    search = types.SimpleNamespace(agent=types.SimpleNamespace(step=0), hooks=None)
    for search.agent.step in range(20):
        hooks.RemovableHandle.next_id += register(search.agent.step)
        found = _holders.Search.hooked(search)
    return found
_holders.contents = vars
print(asked(lambda step: 1), asked(lambda step: step % 2), asked(lambda step: step % 5 == 0), asked(lambda step: 9 * (step == 0)))
del sys.modules["torch.utils.hooks"]
print(_holders.Search.hooked(types.SimpleNamespace(agent=types.SimpleNamespace(step=9), hooks=None)))
`

// TestHooksThatAreRegisteredAgainAndAgainAreLookedFor: each took so little that nobody looked for what holds them.
func TestHooksThatAreRegisteredAgainAndAgainAreLookedFor(t *testing.T) {
	t.Parallel()
	agentProgram(t, registers, "True True False False\nFalse\n")
}
