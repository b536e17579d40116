use yiem_tools::tool;

struct Weather;

impl Weather {
    #[tool]
    async fn f(&self, city: String) -> yiem_core::Result<String> {
        Ok(city)
    }
}

#[tool]
struct NotAFunction;

fn main() {}
