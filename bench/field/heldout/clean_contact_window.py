"""A NetworkX graph has the newest 4000 contacts of people who come and go; people without a contact are pruned now and then."""
# kind: graphs
# expect: clean
import collections
import random

import networkx as nx

random.seed(0)
graph = nx.Graph()
window = collections.deque()
newcomers = 0
largest = 0
for step in range(600_000):
    newcomers += random.random() < 0.5
    first = newcomers - min(newcomers, int(random.expovariate(1 / 300)))
    second = newcomers - min(newcomers, int(random.expovariate(1 / 300))) - 1
    graph.add_node(first, seen=step)
    graph.add_node(second, seen=step)
    graph.add_edge(first, second, at=step, note=f"contact {step}")
    window.append((first, second, step))
    if len(window) > 4000:
        old, other, at = window.popleft()
        if graph.has_edge(old, other) and graph.edges[old, other]["at"] == at:
            graph.remove_edge(old, other)
    if step % 250 == 249:
        graph.remove_nodes_from(list(nx.isolates(graph)))
        largest += max(map(len, nx.connected_components(graph)))
print(f"largest {largest}, of {newcomers}")
