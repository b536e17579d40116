"""An MCP server on the Python SDK 1.x: legacy only. Arguments: stdio, or http PORT."""

import sys

from mcp.server.fastmcp import FastMCP

port = int(sys.argv[2]) if sys.argv[1] == "http" else 8000
server = FastMCP("python-one", host="127.0.0.1", port=port)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run(transport="streamable-http" if sys.argv[1] == "http" else "stdio")
