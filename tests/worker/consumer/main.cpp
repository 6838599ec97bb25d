// Saves one tensor under the root given and loads it again.
#include <vckpt/worker.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  vckpt::ConnectOptions options;
  options.root = argv[1];
  options.run = "consumer";
  options.staging_bytes = 1 << 20;
  auto worker = vckpt::Worker::connect(options);
  if (!worker) {
    std::fprintf(stderr, "connect: %s\n", worker.error().message.c_str());
    return 1;
  }
  std::vector<float> weights(1000, 1.5F);
  vckpt::State state;
  state.section("model").add({"layers.0.wq", vckpt::DType::f32, {10, 100}}, vckpt::Box{{0, 0}, {10, 100}},
                             weights.data());
  auto saving = (*worker)->save(vckpt::Step{100}, state);
  if (!saving) return 1;
  const auto done = saving->wait_committed(std::chrono::seconds(60));
  if (!done) return 1;
  weights.assign(1000, 0.0F);
  const auto loaded = (*worker)->load(vckpt::newest, state);
  if (!loaded || !*loaded || weights != std::vector<float>(1000, 1.5F)) return 1;
  std::printf("%s\n", vckpt::to_json(*done).c_str());
  return (*worker)->close() ? 0 : 1;
}
