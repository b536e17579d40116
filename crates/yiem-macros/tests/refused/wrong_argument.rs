use yiem_core::{Result, ToolContext};
use yiem_tools::tool;

#[tool]
async fn f(#[arg(defalt)] city: String) -> Result<String> {
    Ok(city)
}

#[tool]
async fn g(city: String, #[arg(name = "city")] town: String) -> Result<String> {
    Ok(city + &town)
}

#[tool]
async fn h(a: ToolContext, b: &ToolContext) -> Result<String> {
    drop((a, b));
    Ok(String::new())
}

fn main() {}
