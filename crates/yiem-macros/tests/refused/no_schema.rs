use yiem_core::Result;
use yiem_tools::tool;

struct City(String);
#[tool]
async fn f(city: City) -> Result<String> { Ok(city.0) }

fn main() {}
