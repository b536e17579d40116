use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f(names: &[String], any: impl ToString) -> Result<String> { Ok(names.concat() + &any.to_string()) }

fn main() {}
