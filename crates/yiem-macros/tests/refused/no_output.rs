use yiem_core::Result;
use yiem_tools::tool;

struct City(String);
#[tool]
async fn f(city: String) -> Result<City> { Ok(City(city)) }

fn main() {}
