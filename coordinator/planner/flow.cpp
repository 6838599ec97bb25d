#include "coordinator/planner/flow.h"

#include <algorithm>

namespace vckpt {

std::size_t FlowNetwork::add(std::size_t source, std::size_t target, std::uint64_t capacity) {
  const std::size_t edge = edges_.size();
  edges_.push_back(Edge{target, capacity});
  edges_.push_back(Edge{source, 0});
  edges_of_[source].push_back(edge);
  edges_of_[target].push_back(edge + 1);
  return edge;
}

bool FlowNetwork::layer(std::size_t source, std::size_t target) {
  depth_.assign(edges_of_.size(), unreached);
  depth_[source] = 0;
  std::vector<std::size_t> queue{source};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const auto edge : edges_of_[queue[i]]) {
      if (edges_[edge].left == 0 || depth_[edges_[edge].target] != unreached) continue;
      depth_[edges_[edge].target] = depth_[queue[i]] + 1;
      queue.push_back(edges_[edge].target);
    }
  }
  return depth_[target] != unreached;
}

// One path of the layered network, without recursion: paths may be as long as the network.
std::uint64_t FlowNetwork::push_path(std::size_t source, std::size_t target) {
  std::vector<std::size_t> path;
  std::size_t node = source;
  while (node != target) {
    auto& next = next_[node];
    const auto& edges = edges_of_[node];
    while (next < edges.size() &&
           (edges_[edges[next]].left == 0 || depth_[edges_[edges[next]].target] != depth_[node] + 1)) {
      ++next;
    }
    if (next < edges.size()) {
      path.push_back(edges[next]);
      node = edges_[edges[next]].target;
      continue;
    }
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].target;
    path.pop_back();
    ++next_[node];
  }
  std::uint64_t bytes = UINT64_MAX;
  for (const auto edge : path) bytes = std::min(bytes, edges_[edge].left);
  for (const auto edge : path) {
    edges_[edge].left -= bytes;
    edges_[edge ^ 1].left += bytes;
  }
  return bytes;
}

std::uint64_t FlowNetwork::maximize(std::size_t source, std::size_t target) {
  std::uint64_t total = 0;
  while (layer(source, target)) {
    next_.assign(edges_of_.size(), 0);
    while (const std::uint64_t bytes = push_path(source, target)) total += bytes;
  }
  return total;
}

}  // namespace vckpt
