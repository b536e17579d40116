use yiem_core::Result;
use yiem_tools::tool;

#[tool(timout = "20s")]
async fn f(city: String) -> Result<String> {
    Ok(city)
}

#[tool(timeout = "20 parsecs")]
async fn g(#[arg(defalt)] city: String) -> Result<String> {
    Ok(city)
}

#[tool(name = "no spaces please")]
async fn h(#[arg(defalt)] city: String) -> Result<String> {
    Ok(city)
}

fn main() {}
