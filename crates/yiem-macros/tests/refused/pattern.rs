use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f((a, b): (String, String)) -> Result<String> { Ok(a + &b) }

fn main() {}
