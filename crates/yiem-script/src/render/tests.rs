use serde_json::json;

use super::*;

#[test]
fn a_module_reads_as_if_a_person_had_written_it() {
    let draft = Draft {
        name: "searchWine".to_owned(),
        label: "Wine Search".to_owned(),
        description: "Search a \"wine\" database\nby name".to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "max-results": {"type": "integer", "default": 10}},
            "required": ["query"],
            "anyOf": [{"minProperties": 1}],
            "examples": [],
            "__proto__": {},
        }),
        parallel: Some(false),
        execute: "const { query } = args;\n\nreturn `Found ${query}`;\n".to_owned(),
        validate: Some("return args.query ? null : 'no query';".to_owned()),
        prepare: Some("return args;".to_owned()),
    };
    let now = Timestamp::parse("2026-11-30T03:17:12Z").unwrap();
    assert_eq!(
        module(&draft, now),
        r#"// Made by writeTool on 2026-11-30.
export const tool = {
    name: "searchWine",
    label: "Wine Search",
    description: "Search a \"wine\" database\nby name",
    inputSchema: {
        type: "object",
        properties: {
            query: {
                type: "string",
            },
            "max-results": {
                type: "integer",
                default: 10,
            },
        },
        required: ["query"],
        anyOf: [
            {
                minProperties: 1,
            },
        ],
        examples: [],
        ["__proto__"]: {},
    },
    parallel: false,
};

export function prepare(args) {
    return args;
}

export function validate(args) {
    return args.query ? null : 'no query';
}

export async function execute(args, host) {
    const { query } = args;

    return `Found ${query}`;
}
"#
    );
}

#[test]
fn lines_inside_texts_are_left_alone() {
    for (code, expected) in [
        ("a\n  b\n\nc", "    a\n      b\n\n    c\n"),
        ("a\r\nb\rc", "    a\n    b\n    c\n"),
        ("x = `a\nb\n  c`;\nd", "    x = `a\nb\n  c`;\n    d\n"),
        (
            "x = `a${\nf({\n})\n}b\nc`;\nd",
            "    x = `a${\n    f({\n    })\n    }b\nc`;\n    d\n",
        ),
        ("x = `${`a\nb`}\nc`\nd", "    x = `${`a\nb`}\nc`\n    d\n"),
        ("x = '`';\ny", "    x = '`';\n    y\n"),
        ("x = \"a\\\nb\";\ny", "    x = \"a\\\nb\";\n    y\n"),
        ("// it's `\nx", "    // it's `\n    x\n"),
        ("/* `\n' */\nx", "    /* `\n    ' */\n    x\n"),
        ("x = /`/;\ny", "    x = /`/;\n    y\n"),
        ("x = /[/`]/;\ny", "    x = /[/`]/;\n    y\n"),
        ("return /`/\ny", "    return /`/\n    y\n"),
        ("a = b / c; d = `x\ny`", "    a = b / c; d = `x\ny`\n"),
        ("if (x) /`/.test(y)\nz", "    if (x) /`/.test(y)\nz\n"),
        ("x = `\\`\na`\nb", "    x = `\\`\na`\n    b\n"),
        ("x = a\n/ 2 / `1\n2`", "    x = a\n    / 2 / `1\n2`\n"),
        ("", "\n"),
    ] {
        assert_eq!(indented(code), expected, "{code}");
    }
}
