use yiem_core::Result;
use yiem_tools::tool;

#[tool]
fn f(city: String) -> Result<String> { Ok(city) }

fn main() {}
