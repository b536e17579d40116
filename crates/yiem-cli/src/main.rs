//! The command yiem.

mod demo;

fn main() {
    let _ = (
        demo::GetTime::new(),
        demo::GetWeather::new(),
        demo::DemoModel::new(),
    );
}
