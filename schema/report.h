// What a save or load says about itself. Keys of the JSON form are the field names. A rank whose coordinator was lost
// after the commit knows of the whole job only the bytes; the rest is zero.
#pragma once

#include <cstdint>
#include <string>

namespace vckpt {

struct Report {
  std::uint32_t ranks = 0;
  // Of the whole job:
  std::uint64_t unique_bytes = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t storage_bytes_read = 0;  // chunks touched, each once
  std::uint64_t bytes_needed = 0;        // over all targets
  std::uint64_t bytes_received = 0;      // over all ranks, from other ranks
  double most_loaded_over_mean = 0;
  double most_loaded_over_bound = 0;
  double plan_seconds = 0;
  bool plan_cached = false;
  // Of this rank:
  double stall_seconds = 0;              // the caller was held
  double stall_copy_seconds = 0;         // of it, copying
  double stall_peers_seconds = 0;        // of it, waiting for others
  double durable_seconds = 0;            // from the call to the commit
  std::uint64_t staging_peak_bytes = 0;  // the most over all ranks
  bool operator==(const Report&) const = default;
};

std::string to_json(const Report& report);

}  // namespace vckpt
