#include "schema/report.h"

#include <nlohmann/json.hpp>

namespace vckpt {

std::string to_json(const Report& report) {
  nlohmann::ordered_json json;
  json["ranks"] = report.ranks;
  json["unique_bytes"] = report.unique_bytes;
  json["bytes_written"] = report.bytes_written;
  json["storage_bytes_read"] = report.storage_bytes_read;
  json["bytes_needed"] = report.bytes_needed;
  json["bytes_received"] = report.bytes_received;
  json["most_loaded_over_mean"] = report.most_loaded_over_mean;
  json["most_loaded_over_bound"] = report.most_loaded_over_bound;
  json["plan_seconds"] = report.plan_seconds;
  json["plan_cached"] = report.plan_cached;
  json["stall_seconds"] = report.stall_seconds;
  json["stall_copy_seconds"] = report.stall_copy_seconds;
  json["stall_peers_seconds"] = report.stall_peers_seconds;
  json["durable_seconds"] = report.durable_seconds;
  json["staging_peak_bytes"] = report.staging_peak_bytes;
  return json.dump();
}

}  // namespace vckpt
