use yiem_core::Result;
use yiem_tools::tool;

#[tool]
async fn f(city: String) -> Result<impl ToString> {
    Ok(city)
}

fn main() {}
