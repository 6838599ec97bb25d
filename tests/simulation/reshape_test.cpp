// Any number of ranks and any layout into any other, bit for bit, with honest reports.
#include "tests/simulation/cluster.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

void check_save(const Result<Report>& saved, const Cluster& cluster, std::uint64_t staging_bytes) {
  INFO(cluster.story());
  if (!saved) FAIL(saved.error().message);
  CHECK(saved->bytes_written == saved->unique_bytes);
  CHECK(saved->ranks == cluster.ranks());
  for (const auto& result : cluster.results()) CHECK((*result)->staging_peak_bytes <= staging_bytes);
}

void check_load(Cluster& cluster, Step step, std::uint64_t unique_bytes, std::uint64_t staging_bytes) {
  const std::uint64_t moved_before = cluster.bulk().moved_bytes();
  CHECK(cluster.load_latest() == step);
  const Report& report = **cluster.results().front();
  CHECK(report.storage_bytes_read == unique_bytes);  // every tensor is wanted: every chunk once
  CHECK(report.bytes_needed == cluster.held_bytes());
  CHECK(report.bytes_received == cluster.received_bytes());
  CHECK(report.bytes_received == cluster.bulk().moved_bytes() - moved_before);
  for (const auto& result : cluster.results()) CHECK((*result)->staging_peak_bytes <= staging_bytes);
}

}  // namespace

TEST_CASE("a state saved by N ranks is loaded by M ranks, bit for bit", "[simulation]") {
  constexpr std::uint32_t ranks_max = 6;
  for (std::uint32_t writers = 1; writers <= ranks_max; ++writers) {
    const std::uint64_t seed = 100 + writers;
    ClusterOptions options{.ranks = writers, .seed = seed, .layout = random_layout(seed, seed * 10)};
    Cluster cluster(options);
    INFO("seed " << seed << ", " << writers << " writers");
    const auto saved = cluster.save(Step{7});
    check_save(saved, cluster, options.staging_bytes);
    for (std::uint32_t readers = 1; readers <= ranks_max; ++readers) {
      INFO(readers << " readers");
      cluster.set_layout(random_layout(seed, seed * 10 + readers));
      cluster.restart_ranks(readers);
      check_load(cluster, Step{7}, saved->unique_bytes, options.staging_bytes);
    }
  }
}

TEST_CASE("a staging budget of an eighth of the state is never exceeded", "[simulation]") {
  constexpr std::uint64_t state_mib = 16;
  ClusterOptions options{.ranks = 2, .seed = 5, .layout = large_layout(state_mib)};
  options.staging_bytes = state_mib << 17;
  Cluster cluster(options);
  const auto saved = cluster.save(Step{1});
  check_save(saved, cluster, options.staging_bytes);
  CHECK(saved->unique_bytes == state_mib << 20);
  cluster.restart_ranks(3);
  check_load(cluster, Step{1}, saved->unique_bytes, options.staging_bytes);
}

}  // namespace vckpt
