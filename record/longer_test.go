//go:build unix

package record_test

import "testing"

// early has the only walk find the first of what then becomes more. What stays as long, and what has become
// shorter, keeps its name.
const early = searches + `
class Layer:
    def __init__(self):
        self.keys, self.values = Tensor(), Tensor()
class Cache:
    def __init__(self, n):
        self.layers = [Layer() for _ in range(n)]
def first(tensors):
    s = search(*([t] for t in tensors()), births=[1])
    s.growing = lambda: {address: site for address, (site, *_) in s.source.table.items()}
    show(s)
    print("then")
    s.budget.spent = 1e9
    return s
chats = {0: Cache(1)}
s = first(lambda: (chats[0].layers[0].keys, chats[0].layers[0].values,))
chats.update((i, Cache(1)) for i in range(1, 9))
show(s)
chats.update((i, Cache(1)) for i in range(9, 20))
show(s)

chats = {0: Cache(2)}
s = first(lambda: (chats[0].layers[0].keys, chats[0].layers[1].values,))
chats.update((i, Cache(2)) for i in range(1, 9))
show(s)

turns = [Layer()]
s = first(lambda: (turns[0].keys,))
turns += [Layer() for _ in range(8)]
show(s)

keyed = {"a": [Tensor()]}
s = first(lambda: (keyed["a"][0],))
keyed["a"] += [Tensor() for _ in range(8)]
keyed["b"] = keyed["c"] = None
show(s)

pairs = {0: (Tensor(), Tensor()), 1: ()}
s = first(lambda: (pairs[0][0], pairs[0][1],))
del pairs[1]
show(s)
`

func TestWhatBecameLongerOnTheWayToTheFirstOneHoldsTheOthers(t *testing.T) {
	t.Parallel()
	agentProgram(t, early, `attribute __main__.chats[0].layers[…].keys 0 of stack 1
attribute __main__.chats[0].layers[…].values 0 of stack 2
then
dict __main__.chats 9 of stack 1
dict __main__.chats 9 of stack 2
dict __main__.chats 20 of stack 1
dict __main__.chats 20 of stack 2
list __main__.chats[0].layers 2 of stack 1
list __main__.chats[0].layers 2 of stack 2
then
dict __main__.chats 9 of stack 1
dict __main__.chats 9 of stack 2
attribute __main__.turns[…].keys 0 of stack 1
then
list __main__.turns 9 of stack 1
variable __main__.keyed['a'][…] 0 of stack 1
then
list __main__.keyed['a'] 9 of stack 1
tuple __main__.pairs[0] 2 of stack 1
tuple __main__.pairs[0] 2 of stack 2
then
tuple __main__.pairs[0] 2 of stack 1
tuple __main__.pairs[0] 2 of stack 2
`)
}
