//! Prints the tables.
fn main() {
    for loss in [0.05, 0.15] {
        println!("loss {loss}\n{}", coapway_model::tables::of_loss(loss, 7, 25_000));
    }
    println!("{}", coapway_model::tables::of_bottleneck(7));
}
