"""An MCP server on the Python SDK 2.x: both eras. Arguments: stdio, or http PORT."""

import sys

from mcp.server import MCPServer

server = MCPServer("python-two")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def greet(name: str) -> str:
    """Greets someone."""
    return f"Hello, {name}!"


if sys.argv[1] == "http":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run()
