// Made by writeTool on 2026-11-30.
export const tool = {
    name: "searchWine",
    label: "Wine Search",
    description: "Search a wine database by name, region, or variety",
    inputSchema: {
        type: "object",
        properties: {
            query: {
                type: "string",
            },
            maxResults: {
                type: "integer",
                default: 10,
            },
        },
        required: ["query"],
    },
    parallel: false,
};

export function prepare(args) {
    return { ...args, query: args.query?.trim() };
}

export function validate(args) {
    return args.query ? null : "Missing required argument: 'query'";
}

export async function execute(args, host) {
    const wines = ["Cabernet Sauvignon", "Cabernet Franc", "Merlot", "Rioja", "Riesling", "Syrah"];
    const query = args.query.toLowerCase();
    const found = wines.filter((wine) => wine.toLowerCase().includes(query)).slice(0, args.maxResults ?? 10);
    return {
        content: [{ type: "text", text: `Found ${found.length} wines: ${found.join(", ")}` }],
        details: { found },
    };
}
