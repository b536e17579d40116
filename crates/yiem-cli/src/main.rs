//! The command yiem.

mod args;
mod demo;
mod screen;

fn main() {
    let _ = (
        demo::GetTime::new(),
        demo::GetWeather::new(),
        demo::DemoModel::new(),
    );
}
