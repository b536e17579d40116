export const tool = {
    name: "wordCount",
    label: "Word Count",
    description: "Counts the words and characters of a text",
    inputSchema: {
        type: "object",
        properties: { text: { type: "string", description: "The text" } },
        required: ["text"],
    },
};

export function execute({ text }) {
    const words = text.split(/\s+/).filter((word) => word !== "");
    return { words: words.length, characters: [...text].length };
}
