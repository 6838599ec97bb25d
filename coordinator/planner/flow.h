// Maximum flow (Dinic's algorithm) over a small network of byte capacities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vckpt {

class FlowNetwork {
 public:
  explicit FlowNetwork(std::size_t node_count) : edges_of_(node_count) {}

  // The number of the edge, for flow().
  std::size_t add(std::size_t source, std::size_t target, std::uint64_t capacity);
  // The sum of all capacities out of `source` must fit in 64 bits.
  std::uint64_t maximize(std::size_t source, std::size_t target);
  std::uint64_t flow(std::size_t edge) const { return edges_[edge ^ 1].left; }
  // After maximize: whether the node is on the source's side of the minimum cut.
  bool reachable(std::size_t node) const { return depth_[node] != unreached; }

 private:
  static constexpr std::uint32_t unreached = 0xFFFFFFFF;
  struct Edge {
    std::size_t target;
    std::uint64_t left;
  };
  bool layer(std::size_t source, std::size_t target);
  std::uint64_t push_path(std::size_t source, std::size_t target);

  std::vector<Edge> edges_;  // an edge and its reverse lie side by side
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<std::uint32_t> depth_;
  std::vector<std::size_t> next_;
};

}  // namespace vckpt
