export const tool = {
    name: "diceRoll",
    label: "Dice Roll",
    description: "Rolls dice and adds them up",
    inputSchema: {
        type: "object",
        properties: {
            dice: { type: "integer", minimum: 1, maximum: 20, default: 1 },
            sides: { type: "integer", minimum: 2, maximum: 100, default: 6 },
        },
    },
};

export async function execute(args, host) {
    const rolls = Array.from({ length: args.dice }, () => 1 + Math.floor(Math.random() * args.sides));
    host.progress({ rolls });
    return { content: `${rolls.join(" + ")} = ${rolls.reduce((sum, roll) => sum + roll, 0)}`, details: { rolls } };
}
