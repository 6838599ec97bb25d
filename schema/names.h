// Names on disk: every path under a root is made here from numbers and checked words, never taken from a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "box.h"
#include "ids.h"
#include "layout.h"
#include "manifest.h"

namespace vckpt::names {

inline constexpr std::string_view run = "RUN";
inline constexpr std::string_view epochs = "epochs";
inline constexpr std::string_view plans = "plans";
inline constexpr std::string_view data = "data";
inline constexpr std::string_view decisions = "decisions";
inline constexpr std::string_view retirements = "retirements";
inline constexpr std::string_view pins = "pins";

std::string epoch(Epoch epoch);                                         // epochs/000003
std::string plan(const Digest& digest);                                 // plans/<32 hex digits>
std::string decision(const CheckpointId& id);                           // decisions/<id>
std::string checkpoint(const CheckpointId& id);                         // data/<id>
std::string section(const CheckpointId& id, std::string_view section);  // data/<id>/<section>
std::string rank_folder(const FilePlace& place);                        // data/<id>/<section>/<rank / 1024>
std::string data_file(const FilePlace& place);  // data/<id>/<section>/<rank / 1024>/rank-000003-0.safetensors
std::string segment(const CheckpointId& id, Epoch decided_by, Nonce nonce, std::uint32_t index);
// data/<id>/manifest-000003-<16 hex digits>-0

std::optional<Epoch> parse_epoch(std::string_view last_component);

// The name of a stored piece inside a data file. A whole tensor keeps its fqn, a part is `<fqn>@<offsets>+<sizes>` with
// the numbers joined by `x` (`w@0x128+64x128`). An fqn that could be read as either of the other forms, or that the
// format reserves (`__metadata__`), is escaped: a leading `@`, and for the whole tensor a closing `@` as well
// (`@__metadata__@`); so is one that begins with `@`.
std::string piece(const TensorSpec& spec, const Box& box);

struct ParsedPiece {
  std::string fqn;
  std::optional<Box> box;  // nothing: the whole tensor
  bool operator==(const ParsedPiece&) const = default;
};
// Inverse of piece; corrupt when no piece has this name.
Result<ParsedPiece> parse_piece(std::string_view name);

}  // namespace vckpt::names
