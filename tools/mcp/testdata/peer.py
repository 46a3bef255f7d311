"""An MCP server made with the Python SDK, on standard input and output or, with an argument, over HTTP at that port."""
import sys

try:
    from mcp.server import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

server = Server("peer")


@server.tool()
def add(a: int, b: int = 1, note: str | None = None) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def voiceos_hook_transcript(text: str) -> str:
    """A hook."""
    return text


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("no bread left")


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run()
