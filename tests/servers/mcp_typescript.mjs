// An MCP server on the TypeScript SDK v2 over stdio: both eras. Its packages are found from the working directory.
import { createRequire } from 'node:module';

const require = createRequire(process.cwd() + '/package.json');
const { McpServer } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { z } = require('zod');

serveStdio(() => {
  const server = new McpServer({ name: 'typescript', version: '1.0.0' });
  server.registerTool(
    'add',
    { description: 'Adds two numbers.', inputSchema: z.object({ a: z.number(), b: z.number() }) },
    async ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
  );
  return server;
});
