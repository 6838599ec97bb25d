#include "schema/plan.h"

#include <algorithm>
#include <tuple>

namespace vckpt {

std::vector<PlacedPiece> place_pieces(const std::vector<TensorSpec>& tensors, std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
    const auto width_a = bits(tensors[a.tensor].dtype);
    const auto width_b = bits(tensors[b.tensor].dtype);
    if (width_a != width_b) return width_a > width_b;
    return std::tie(a.tensor, a.box.offsets, a.box.sizes) < std::tie(b.tensor, b.box.offsets, b.box.sizes);
  });
  std::vector<PlacedPiece> placed;
  placed.reserve(pieces.size());
  std::uint64_t offset = 0;
  for (auto& piece : pieces) {
    const std::uint64_t length = box_bytes(tensors[piece.tensor].dtype, piece.box);
    if (length == 0) continue;
    placed.push_back(PlacedPiece{piece.tensor, std::move(piece.box), offset, length});
    offset += length;
  }
  return placed;
}

std::vector<PlacedPiece> file_pieces(const SectionPlan& plan, Rank rank) {
  const RankOwnership& ownership = plan.ranks[rank.value];
  std::vector<Piece> pieces = ownership.pieces;
  if (ownership.body != no_body) {
    for (const auto& entry : plan.bodies[ownership.body].entries) {
      Box box = entry.box ? *entry.box : whole(plan.tensors[entry.tensor].shape);
      for (const auto& step : entry.cuts) box = cut(box, step.dim, step.parts, ownership.coordinates[step.slot]);
      pieces.push_back(Piece{entry.tensor, std::move(box)});
    }
  }
  return place_pieces(plan.tensors, std::move(pieces));
}

std::uint64_t data_bytes(const std::vector<PlacedPiece>& pieces) {
  return pieces.empty() ? 0 : pieces.back().offset_bytes + pieces.back().length_bytes;
}

}  // namespace vckpt
