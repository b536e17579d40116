use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f(city: &str) -> Result<String> { Ok(city.to_owned()) }

fn main() {}
