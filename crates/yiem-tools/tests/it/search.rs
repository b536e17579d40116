//! Search among 500 tools, those of real servers among them (T-5).

use serde::Deserialize;
use serde_json::Value;
use yiem_core::ToolDefinition;
use yiem_tools::SearchIndex;

const REAL: &str = include_str!("../fixtures/tools/real_servers.json");
const MADE_UP: &str = include_str!("../fixtures/tools/made_up.json");
const QUESTIONS: &str = include_str!("../fixtures/tools/questions.txt");

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

fn questions() -> impl Iterator<Item = (&'static str, &'static str)> {
    QUESTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(" => ").expect("a question and a tool"))
}

#[test]
fn the_right_tool_is_among_the_first_five() {
    let tools = tools();
    assert_eq!(tools.len(), 500);
    let index = SearchIndex::new(&tools);
    assert_eq!(questions().count(), 40);
    let missed: Vec<String> = questions()
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
    let apart = questions()
        .filter(|(question, tool)| {
            let question = words(question);
            words(tool).iter().all(|w| !question.contains(w))
        })
        .count();
    assert!(apart >= 20, "{apart}");
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
