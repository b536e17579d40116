//! Search among 500 tools, those of real servers among them (T-5).

use serde::Deserialize;
use serde_json::Value;
use yiem_core::ToolDefinition;
use yiem_tools::SearchIndex;

const REAL: &str = include_str!("../fixtures/tools/real_servers.json");
const MADE_UP: &str = include_str!("../fixtures/tools/made_up.json");
/// Two tables of forty, by two people who saw only the descriptions.
const QUESTIONS: [(&str, &str); 2] = [
    ("questions", include_str!("../fixtures/tools/questions.txt")),
    (
        "questions_older",
        include_str!("../fixtures/tools/questions_older.txt"),
    ),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    name: String,
    description: String,
    input_schema: Value,
}

fn tools() -> Vec<ToolDefinition> {
    let listed = |text| serde_json::from_str::<Vec<Listed>>(text).expect("a list of tools");
    listed(MADE_UP)
        .into_iter()
        .chain(listed(REAL))
        .map(|t| ToolDefinition {
            name: t.name,
            description: t.description,
            input_schema: t.input_schema,
            ..ToolDefinition::default()
        })
        .collect()
}

fn questions(table: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(" => ").expect("a question and a tool"))
}

#[test]
fn the_right_tool_is_among_the_first_five() {
    let tools = tools();
    assert_eq!(tools.len(), 500);
    let index = SearchIndex::new(&tools);
    let asked = QUESTIONS.iter().flat_map(|(table, text)| {
        assert_eq!(questions(text).count(), 40, "{table}");
        questions(text)
    });
    let missed: Vec<String> = asked
        .filter_map(|(question, wanted)| {
            assert!(
                tools.iter().any(|t| t.name == wanted),
                "{wanted} is no tool"
            );
            let hits = index.search(question, 5);
            let found = hits.iter().any(|h| h.name() == wanted);
            let names: Vec<&str> = hits.iter().map(|h| h.name()).collect();
            (!found).then(|| format!("{question} wants {wanted}, got {names:?}"))
        })
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn half_of_the_questions_share_no_word_with_the_tools_name() {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|w| !w.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    for (table, text) in QUESTIONS {
        let apart = questions(text)
            .filter(|(question, tool)| {
                let question = words(question);
                words(tool).iter().all(|w| !question.contains(w))
            })
            .count();
        assert!(apart >= 20, "{table}: {apart}");
    }
}

#[test]
fn a_tools_own_name_finds_it_first_in_any_writing() {
    let tools = tools();
    let index = SearchIndex::new(&tools);
    for name in ["git_status", "git status", "gitStatus", "GIT-STATUS"] {
        assert_eq!(index.search(name, 1)[0].name(), "git_status", "{name}");
    }
}

#[test]
fn odd_searches_find_nothing_and_end() {
    let index = SearchIndex::new(&tools());
    for words in ["", "   ", "the of and", "§§§", &"word ".repeat(100_000)] {
        assert!(index.search(words, 5).len() <= 5);
    }
    assert!(index.search("", 5).is_empty());
    assert!(index.search("git", 0).is_empty());
    assert!(SearchIndex::new(&[]).search("git", 5).is_empty());
}

fn found(tools: &[(&str, &str, Value)], words: &str) -> Vec<String> {
    let tools: Vec<ToolDefinition> = tools
        .iter()
        .map(|(name, description, schema)| ToolDefinition {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            input_schema: schema.clone(),
            ..ToolDefinition::default()
        })
        .collect();
    let hits = SearchIndex::new(&tools).search(words, 5);
    hits.iter().map(|h| h.name().to_owned()).collect()
}

#[test]
fn words_meet_in_every_form_in_which_people_write_them() {
    let none = || serde_json::json!({ "type": "object" });
    let tools = [
        ("sendEmail", "Sends an email.", none()),
        ("todo_add", "Puts something on the to-do list.", none()),
        ("takeScreenshot", "Takes a screenshot.", none()),
        ("calendar", "Shows the calendar.", none()),
        ("fs_usage", "Tells how full the file system is.", none()),
        ("tianqi", "查询城市的天气预报", none()),
        ("weiter", "Zeigt das Wetter für morgen.", none()),
    ];
    for (question, wanted) in [
        ("has the e-mail been sent", "sendEmail"),
        ("mails", "sendEmail"),
        ("add to my todos", "todo_add"),
        ("a screen shot please", "takeScreenshot"),
        ("calender", "calendar"),
        ("filesystem", "fs_usage"),
        ("明天天气", "tianqi"),
        ("WETTER", "weiter"),
    ] {
        assert_eq!(
            found(&tools, question).first().map(String::as_str),
            Some(wanted),
            "{question}"
        );
    }
}

#[test]
fn parameters_inside_of_others_and_their_choices_are_found() {
    let tools = [
        (
            "order",
            "Places an order.",
            serde_json::json!({ "properties": { "lines": { "items": { "properties": {
                "espresso": { "description": "How many cups" },
            } } } } }),
        ),
        (
            "paint",
            "Paints.",
            serde_json::json!({ "properties": { "colour": { "enum": ["crimson", 7, null] } } }),
        ),
        // Odd schemas cost nothing but what they do not say.
        (
            "odd",
            "Odd.",
            serde_json::json!({ "properties": [1], "items": true }),
        ),
        ("odder", "Odder.", serde_json::json!(null)),
    ];
    assert_eq!(found(&tools, "cups of espresso"), ["order"]);
    assert_eq!(found(&tools, "crimson"), ["paint"]);
}

#[test]
fn of_two_tools_the_one_that_answers_more_of_the_question_comes_first() {
    let none = || serde_json::json!({ "type": "object" });
    let mut tools = vec![
        ("delete_page", "Deletes a page, delete, delete.", none()),
        ("archive_page", "Archives a page.", none()),
    ];
    assert_eq!(
        found(&tools, "archive the page without deleting it")[0],
        "archive_page"
    );
    tools.swap(0, 1);
    assert_eq!(found(&tools, "delete the page")[0], "delete_page");
}
