#include "tests/schema/codec_samples.h"

namespace vckpt::testing {
namespace {

template <typename T>
Sample sample(std::string name, T value, Result<T> (*decode)(std::span<const std::byte>)) {
  Sample made;
  made.name = std::move(name);
  made.encoded = encode(value);
  made.recode = [decode](std::span<const std::byte> bytes) -> Result<Bytes> {
    VCKPT_TRY(const auto decoded, decode(bytes));
    return encode(decoded);
  };
  made.decodes_to_value = [decode, value = std::move(value)](std::span<const std::byte> bytes) {
    const auto decoded = decode(bytes);
    return decoded.has_value() && *decoded == value;
  };
  return made;
}

Digest numbered(std::uint8_t first) {
  Digest digest;
  for (auto& byte : digest.bytes) byte = static_cast<std::byte>(first++);
  return digest;
}

const CheckpointId id{Epoch{3}, Attempt{12}, Step{600}};
const CheckpointId parent{Epoch{2}, Attempt{7}, Step{500}};
const TensorSpec weight{"layers.0.wq", DType::bf16, {64, 256}};
const TensorSpec scale{"layers.0.scale", DType::f32, {}};

Value every_value() {
  return Value{Value::Map{{"none", {}},
                          {"flag", {true}},
                          {"count", {std::int64_t{-5}}},
                          {"rate", {0.25}},
                          {"name", {std::string("adam")}},
                          {"raw", {Value::Bytes{std::string("\0\xFF", 2)}}},
                          {"list", {Value::List{{std::int64_t{1}}, {Value::List{}}, {Value::Map{}}}}}}};
}

Item item() { return {"optimizer", "rng", Scope::per_rank, every_value()}; }

FileRecord file() { return {"model", Rank{2}, 1, 0, 4096, 2'000'000, 0xAABBCCDD, {1, 0xFFFFFFFF}}; }

Report report() { return {4, 100, 100, 90, 200, 110, 1.25, 1.002, 0.5, true, 0.1, 0.05, 0.02, 2.5, 4096}; }

std::vector<SectionOffer> offers() { return {{"model", numbered(1), {0, 3}}, {"optimizer", numbered(2), {}}}; }
std::vector<ItemOffer> item_offers() { return {{"optimizer", "rng", Scope::per_rank, numbered(3)}}; }

LayoutBody body() {
  return {{scale, weight},
          {{0, std::nullopt, {}, std::nullopt},
           {1, std::nullopt, {Cut{0, 4, 0}, Cut{1, 2, 1}}, std::nullopt},
           {1, Box{{0, 128}, {64, 64}}, {}, Range{10, 90}}}};
}

SavePlan plan() {
  SectionPlan section{"model", {scale, weight}, {}, {}};
  section.bodies.push_back({{{1, std::nullopt, {Cut{0, 2, 0}}, std::nullopt}}});
  section.ranks.push_back({0, {0}, {{0, Box{}}}});
  section.ranks.push_back({no_body, {}, {{1, Box{{32, 0}, {32, 256}}}}});
  return {{section}};
}

SaveSlice save_slice() {
  return {Ordinal{5}, id, numbered(4), {{"model", {weight}, {{0, Box{{32, 0}, {32, 256}}}}}}, {{"optimizer", "rng"}}};
}

LoadSlice load_slice() {
  LoadSlice slice;
  slice.ordinal = Ordinal{6};
  slice.id = id;
  slice.generation = 2;
  slice.rounds = 3;
  slice.tensors = {{"model", weight, "layers.0.query"}};
  slice.files = {{file(), 0}};
  slice.reads = {{Round{1}, 0, 0, 2}};
  const Slice part{0, Box{{0, 0}, {64, 256}}, 0, 0, 32768, Box{{0, 0}, {32, 256}}};
  slice.sends = {{Round{1}, Rank{1}, {part}, {0}}};
  slice.receives = {{Round{1}, Rank{0}, 16384, {part}, {0}}, {Round{2}, Rank{1}, 16384, {part}, {}}};
  slice.gaps = {{0, Box{{0, 0}, {80, 256}}, Box{{0, 0}, {64, 256}}, Outside::keep}};
  slice.items = {item()};
  slice.missing = {"model:bias"};
  slice.unexpected = {"model:extra"};
  slice.meta = "{}";
  return slice;
}

LoadOptions load_options() {
  LoadOptions options;
  options.missing = Missing::keep;
  options.unexpected = Unexpected::ignore;
  options.cast = true;
  options.only = {"layers.*"};
  options.rename = {{"layers.0.query", "layers.0.wq"}};
  options.resize = {{"embed*", Outside::keep}};
  options.per_rank = PerRank::gather;
  return options;
}

void add_messages(std::vector<Sample>& samples) {
  const Envelope envelope{Nonce{0x1122334455667788},       Epoch{3},    Session{2},  Rank{1},
                          Incarnation{0x99AABBCCDDEEFF00}, Attempt{12}, Revision{1}, 77};
  const auto add = [&](std::string name, Message message) {
    samples.push_back(sample<EnvelopedMessage>("message-" + name, {envelope, std::move(message)}, decode_message));
  };
  add("join", Join{"run-1.0", 4, "node-1", 4711, "unix:vckpt-a,tcp:10.0.0.1:80", 1 << 30});
  add("save-call", SaveCall{Ordinal{5}, Step{600}, offers(), item_offers(), {OverBudget::fail, "{\"loss\":1}", true}});
  add("load-call", LoadCall{Ordinal{6}, Selector{id}, offers(), item_offers(), load_options(), 1 << 20});
  add("bodies", Bodies{{body()}});
  add("progress", Progress{Ordinal{5}, Phase::write, 123456});
  add("receipt", Receipt{Ordinal{5}, numbered(4), {file()}, {item()}, 999});
  add("load-receipt", LoadReceipt{Ordinal{6}, 1, 2, 3, 4});
  add("failed", Failed{Ordinal{5}, Phase::sync, unavailable("rank-000002-1.safetensors: sync: Input/output error")});
  add("goodbye", Goodbye{});
  add("joined", Joined{Session{2},
                       "run-1",
                       120000,
                       1000,
                       {{Rank{0}, "node-0", "unix:a", Incarnation{1}}, {Rank{1}, "node-1", "unix:b", Incarnation{2}}}});
  add("refused", Refused{aborted("superseded by epoch 4")});
  add("need-bodies", NeedBodies{Ordinal{5}, {numbered(1), numbered(2)}});
  add("save-slice", save_slice());
  add("committed", Committed{Ordinal{5}, id, report()});
  add("aborted", Aborted{Ordinal{5}, exhausted("rank 2 (node-1) failed in phase write: No space left on device")});
  add("load-slice", load_slice());
  add("loaded", Loaded{Ordinal{6}, id, report()});
  add("pulse", Pulse{});
}

}  // namespace

const std::vector<Sample>& codec_samples() {
  static const std::vector<Sample> samples = [] {
    std::vector<Sample> all;
    all.push_back(sample<RunRecord>("run", {"run-1", Nonce{0xABCDEF}}, decode_run));
    all.push_back(sample<EpochRecord>(
        "epoch", {Epoch{3}, Nonce{9}, "node-0", "tcp://10.0.0.1:4000", "key", 1'800'000'000}, decode_epoch));
    all.push_back(sample<ManifestSegment>(
        "manifest-segment", {id, numbered(4), 4, 0, 2, "{}", {file()}, {{Rank{1}, item()}}}, decode_segment));
    all.push_back(sample<Decision>("decision-commit",
                                   {id,
                                    Verdict::commit,
                                    Epoch{3},
                                    Nonce{9},
                                    parent,
                                    "",
                                    numbered(4),
                                    4,
                                    {{numbered(5), 1000}, {numbered(6), 2000}},
                                    {{"model", 2, 32772}},
                                    1'800'000'001,
                                    true},
                                   decode_decision));
    all.push_back(sample<Decision>("decision-abort",
                                   {id,
                                    Verdict::abort,
                                    Epoch{4},
                                    Nonce{10},
                                    std::nullopt,
                                    "rank 2 is lost",
                                    Digest{},
                                    0,
                                    {},
                                    {},
                                    1'800'000'002,
                                    false},
                                   decode_decision));
    all.push_back(sample<LayoutBody>("body", body(), decode_body));
    all.push_back(sample<Value>("value", every_value(), decode_value));
    all.push_back(sample<SavePlan>("plan", plan(), decode_plan));
    add_messages(all);
    return all;
  }();
  return samples;
}

}  // namespace vckpt::testing
