use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f<T: ToString>(city: T) -> Result<String> { Ok(city.to_string()) }

fn main() {}
