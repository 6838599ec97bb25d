// The plan of a save as columns.
#include <map>

#include "schema/codec_columns.h"

namespace vckpt::wire {
namespace {

void write(Ownership::Builder builder, const std::vector<RankOwnership>& ranks) {
  Numbers32 bodies, coordinate_counts, coordinates, piece_counts;
  std::vector<const Piece*> pieces;
  for (const auto& rank : ranks) {
    bodies.push_back(rank.body);
    coordinate_counts.push_back(list_size(rank.coordinates.size()));
    coordinates.insert(coordinates.end(), rank.coordinates.begin(), rank.coordinates.end());
    piece_counts.push_back(list_size(rank.pieces.size()));
    for (const auto& piece : rank.pieces) pieces.push_back(&piece);
  }
  fill(builder.initBodies(list_size(bodies.size())), bodies);
  fill(builder.initCoordinateCounts(list_size(coordinate_counts.size())), coordinate_counts);
  fill(builder.initCoordinates(list_size(coordinates.size())), coordinates);
  fill(builder.initPieceCounts(list_size(piece_counts.size())), piece_counts);
  write(builder.initPieces(), pieces);
}

}  // namespace

static void write(SectionPlan::Builder builder, const vckpt::SectionPlan& plan) {
  builder.setSection(text(plan.section));
  write(builder.initTensors(), pointers(plan.tensors));
  auto bodies = builder.initBodies(list_size(plan.bodies.size()));
  for (std::size_t i = 0; i < plan.bodies.size(); ++i) write(bodies[static_cast<unsigned>(i)], plan.bodies[i].entries);
  write(builder.initRanks(), plan.ranks);
}

namespace {

// The least number of parts that a body's cuts make by each slot: what a coordinate must stay below.
using SlotLimits = std::map<std::uint32_t, std::uint32_t>;

SlotLimits slot_limits(const OwnedBody& body) {
  SlotLimits limits;
  for (const auto& entry : body.entries) {
    require(!entry.range.has_value(), "a range in a grid");
    for (const auto& cut : entry.cuts) {
      const auto limit = limits.try_emplace(cut.slot, cut.parts).first;
      limit->second = std::min(limit->second, cut.parts);
    }
  }
  return limits;
}

void check_coordinates(const Coordinates& coordinates, const SlotLimits& limits) {
  require(limits.empty() || limits.rbegin()->first < coordinates.size(), "fewer coordinates than its body has slots");
  for (const auto& [slot, limit] : limits) require(coordinates[slot] < limit, "a coordinate out of bounds");
}

std::vector<RankOwnership> read(Ownership::Reader reader, const std::vector<TensorSpec>& tensors,
                                const std::vector<SlotLimits>& limits) {
  const auto bodies = reader.getBodies();
  const auto coordinate_counts = reader.getCoordinateCounts();
  const auto all_coordinates = numbers_of<std::uint32_t>(reader.getCoordinates());
  const auto piece_counts = reader.getPieceCounts();
  auto pieces = within("pieces", [&] { return wire::read(reader.getPieces(), tensors); });
  require(coordinate_counts.size() == bodies.size() && piece_counts.size() == bodies.size(),
          "columns of unequal length");
  std::span<const std::uint32_t> coordinates = all_coordinates;
  auto next_piece = pieces.begin();
  std::vector<RankOwnership> ranks;
  ranks.reserve(bodies.size());
  for (unsigned i = 0; i < bodies.size(); ++i) {
    within("rank " + std::to_string(i), [&] {
      const std::uint32_t body = bodies[i];
      require(body == no_body || body < limits.size(), "body index out of bounds");
      const auto own = take(coordinates, coordinate_counts[i], "coordinates");
      require(piece_counts[i] <= pieces.end() - next_piece, "pieces: too short");
      RankOwnership rank{body, {own.begin(), own.end()}, {}};
      if (body != no_body) check_coordinates(rank.coordinates, limits[body]);
      rank.pieces.assign(std::make_move_iterator(next_piece), std::make_move_iterator(next_piece + piece_counts[i]));
      next_piece += piece_counts[i];
      ranks.push_back(std::move(rank));
    });
  }
  require(coordinates.empty() && next_piece == pieces.end(), "coordinates or pieces that belong to no rank");
  return ranks;
}

}  // namespace

static vckpt::SectionPlan read(SectionPlan::Reader reader) {
  vckpt::SectionPlan plan;
  plan.section = section_of(reader.getSection());
  plan.tensors = within("tensors", [&] { return wire::read(reader.getTensors()); });
  require_sorted(plan.tensors);
  std::vector<SlotLimits> limits;
  for (const auto body : reader.getBodies()) {
    within("body " + std::to_string(plan.bodies.size()), [&] {
      plan.bodies.push_back(OwnedBody{wire::read(body, plan.tensors)});
      limits.push_back(slot_limits(plan.bodies.back()));
    });
  }
  plan.ranks = within("ranks", [&] { return read(reader.getRanks(), plan.tensors, limits); });
  return plan;
}

static vckpt::SavePlan read(SavePlan::Reader reader) {
  vckpt::SavePlan plan;
  for (const auto element : reader.getSections()) {
    auto section = within("section " + std::to_string(plan.sections.size()), [&] { return read(element); });
    if (!plan.sections.empty()) {
      require(plan.sections.back().section < section.section, "sections: not sorted");
      require(plan.sections.back().ranks.size() == section.ranks.size(), "sections: unequal numbers of ranks");
    }
    plan.sections.push_back(std::move(section));
  }
  return plan;
}

}  // namespace vckpt::wire

namespace vckpt {

Bytes encode(const SavePlan& plan) {
  return wire::encode_as<wire::SavePlan>(plan, [](auto builder, const SavePlan& value) {
    auto sections = builder.initSections(wire::list_size(value.sections.size()));
    wire::write_each(sections, value.sections);
  });
}

Result<SavePlan> decode_plan(std::span<const std::byte> bytes) {
  return wire::decode_as<wire::SavePlan, SavePlan>("save plan", bytes, [](auto reader) { return wire::read(reader); });
}

}  // namespace vckpt
