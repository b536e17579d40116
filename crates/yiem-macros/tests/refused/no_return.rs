use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f(city: String) { drop(city) }

fn main() {}
