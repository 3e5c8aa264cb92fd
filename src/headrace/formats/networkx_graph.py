"""Programs from and to graphs of networkx, which is imported on first use."""

from __future__ import annotations

from typing import Any

from headrace.formats.graph_program import GraphEdge, GraphNode, edge_values, node_values, program_of_graph
from headrace.model.arguments import wrong_argument
from headrace.model.errors import BadProgram, UsageError
from headrace.model.program import Program


def program_from_networkx(graph: Any, name: str | None = None) -> Program:
    """The program of a directed graph; see `graph_program` for the attributes of nodes and edges.

    Nodes that are not texts are named by their `str`.
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise wrong_argument("graph", graph, "give a networkx.DiGraph")
    if not graph.is_directed():
        raise BadProgram("the graph has no directions", hint="give a networkx.DiGraph")
    names = {node: node if isinstance(node, str) else str(node) for node in graph.nodes}
    if len(set(names.values())) < len(names):
        raise BadProgram(
            "two nodes have the same name as text", hint="relabel them with networkx.relabel_nodes"
        )
    nodes = [GraphNode(names[node], values) for node, values in graph.nodes(data=True)]
    edges = [GraphEdge(names[a], names[b], values) for a, b, values in graph.edges(data=True)]
    return program_of_graph(name or str(graph.graph.get("name") or "program"), nodes, edges)


def program_to_networkx(program: Program) -> Any:
    """A `networkx.DiGraph` that `program_from_networkx` reads back.

    Inputs from outside and outputs that no task reads are not between two tasks, and are left out.
    """
    try:
        import networkx
    except ImportError:
        raise UsageError("this needs networkx, which is not installed", hint="pip install networkx") from None
    graph = networkx.DiGraph(name=program.name)
    for node in node_values(program):
        graph.add_node(node.id, **node.attributes)
    for edge in edge_values(program):
        graph.add_edge(edge.source, edge.target, **edge.attributes)
    return graph
