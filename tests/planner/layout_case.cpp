#include "tests/planner/layout_case.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "schema/checked.h"

namespace vckpt {
namespace {

using Json = nlohmann::json;

struct Tensor {
  TensorSpec spec;
  std::uint64_t group = 0;
  std::map<std::string, std::uint64_t> vars;
};

struct Axis {
  std::string name;
  std::uint32_t extent;
};

struct Where {
  std::size_t axis;
  std::optional<std::uint64_t> equals;
  std::string var;
  std::uint64_t div = 1;
  std::uint64_t mod = std::uint64_t{1} << 62;
};

// Which ranks of a mesh hold which part of which tensors. Axes by their position in the mesh.
struct Rule {
  std::vector<Axis> mesh;
  std::uint32_t first_rank = 0;
  std::optional<std::vector<std::uint64_t>> groups;
  std::vector<Where> where;
  std::vector<std::pair<std::size_t, std::uint32_t>> cuts;  // axis, dimension
  std::optional<std::size_t> flat;
  std::optional<std::size_t> bucket;
  std::uint64_t align = 1;

  std::size_t axis(const std::string& name) const {
    for (std::size_t i = 0; i < mesh.size(); ++i) {
      if (mesh[i].name == name) return i;
    }
    throw std::runtime_error("no axis " + name);
  }

  bool names(const Tensor& tensor, const Coordinates& at) const {
    if (groups && std::find(groups->begin(), groups->end(), tensor.group) == groups->end()) return false;
    return std::all_of(where.begin(), where.end(), [&](const Where& one) {
      return at[one.axis] == (one.equals ? *one.equals : tensor.vars.at(one.var) / one.div % one.mod);
    });
  }
};

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string name_of(const Json& tensor) {
  if (tensor.contains("fqn_hex")) return from_hex(tensor["fqn_hex"]);
  if (!tensor.contains("fqn_repeat")) return tensor["fqn"];
  std::string name;
  for (std::uint64_t i = 0; i < tensor["fqn_repeat"][1]; ++i) name += tensor["fqn_repeat"][0].get<std::string>();
  return name;
}

DType dtype_of(const Json& tensor) {
  const auto dtype = parse_dtype(tensor["dtype"].get<std::string>());
  if (!dtype) throw std::runtime_error("unknown dtype " + tensor["dtype"].dump());
  return *dtype;
}

Tensor tensor_of(const Json& json) { return Tensor{{name_of(json), dtype_of(json), json["shape"]}, 0, {}}; }

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::vector<Tensor> tensors_of(const Json& json) {
  std::vector<Tensor> tensors;
  if (json.is_array()) {
    for (const auto& tensor : json) tensors.push_back(tensor_of(tensor));
    return tensors;
  }
  for (std::size_t group = 0; group < json["repeat"].size(); ++group) {
    const Json& block = json["repeat"][group];
    std::uint64_t total = 1;
    for (const auto& var : block["vars"]) total *= var[1].get<std::uint64_t>();
    for (std::uint64_t n = 0; n < total; ++n) {
      std::map<std::string, std::uint64_t> vars;
      std::uint64_t rest = n;
      for (std::size_t v = block["vars"].size(); v-- > 0;) {
        vars[block["vars"][v][0]] = rest % block["vars"][v][1].get<std::uint64_t>();
        rest /= block["vars"][v][1].get<std::uint64_t>();
      }
      for (const auto& one : block["tensors"]) {
        Tensor tensor = tensor_of(one);
        for (const auto& [name, value] : vars) replace_all(tensor.spec.fqn, "{" + name + "}", std::to_string(value));
        tensor.group = group;
        tensor.vars = vars;
        tensors.push_back(std::move(tensor));
      }
    }
  }
  return tensors;
}

Rule rule_of(const Json& json) {
  Rule rule;
  for (const auto& axis : json["mesh"]) rule.mesh.push_back(Axis{axis[0], axis[1]});
  rule.first_rank = json.value("first_rank", 0U);
  if (json.contains("groups")) rule.groups = json["groups"].get<std::vector<std::uint64_t>>();
  for (const auto& one : json.value("where", Json::array())) {
    Where where{rule.axis(one["axis"]),
                {},
                one.value("var", ""),
                one.value("div", std::uint64_t{1}),
                one.value("mod", std::uint64_t{1} << 62)};
    if (one.contains("equals")) where.equals = one["equals"].get<std::uint64_t>();
    rule.where.push_back(std::move(where));
  }
  for (const auto& cut : json.value("cut", Json::array())) rule.cuts.emplace_back(rule.axis(cut[0]), cut[1]);
  if (json.contains("flat")) rule.flat = rule.axis(json["flat"]);
  if (json.contains("bucket")) {
    rule.bucket = rule.axis(json["bucket"]["axis"]);
    rule.align = json["bucket"].value("align", std::uint64_t{1});
  }
  return rule;
}

// Bodies get their tensors as entries name them; `numbers` remembers which are in already.
class SideBuilder {
 public:
  SideBuilder(std::size_t world, const std::vector<Tensor>& tensors)
      : bodies_(world), numbers_(world), tensors_(tensors) {}

  void add(std::uint32_t rank, std::size_t tensor, std::optional<Box> box, std::optional<Range> range,
           const std::optional<TensorSpec>& spec = {}) {
    LayoutBody& body = bodies_.at(rank);
    const auto [known, is_new] = numbers_[rank].emplace(tensor, static_cast<std::uint32_t>(body.tensors.size()));
    if (is_new) body.tensors.push_back(spec.value_or(tensors_[tensor].spec));
    body.entries.push_back(Entry{known->second, std::move(box), {}, range});
  }

  void shards(const Json& side) {
    if (!side.contains("shards")) return;
    for (const auto& shard : side["shards"]) {
      std::optional<TensorSpec> spec;
      const std::size_t tensor = shard["tensor"];
      if (shard.contains("spec")) {
        spec = TensorSpec{tensors_[tensor].spec.fqn, dtype_of(shard["spec"]), shard["spec"]["shape"]};
      }
      std::optional<Box> box;
      if (shard.contains("offsets")) box = Box{shard["offsets"], shard["sizes"]};
      std::optional<Range> range;
      if (shard.contains("begin")) range = Range{shard["begin"], shard["end"]};
      add(shard["rank"], tensor, std::move(box), range, spec);
    }
  }

  void rule(const Rule& rule) {
    std::uint32_t world = 1;
    for (const auto& axis : rule.mesh) world *= axis.extent;
    for (std::uint32_t number = 0; number < world; ++number) {
      Coordinates at(rule.mesh.size());
      std::uint32_t rest = number;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        at[axis] = rest % rule.mesh[axis].extent;
        rest /= rule.mesh[axis].extent;
      }
      rank_by_rule(rule, rule.first_rank + number, at);
    }
  }

  SectionPlacement placement() {
    SectionPlacement placement{"model", {}};
    for (auto& body : bodies_) {
      placement.placement.layouts.push_back(Layout{std::make_shared<const LayoutBody>(std::move(body)), {}});
    }
    return placement;
  }

 private:
  void rank_by_rule(const Rule& rule, std::uint32_t rank, const Coordinates& at) {
    struct Mine {
      std::size_t tensor;
      Box box;
      std::uint64_t count;
    };
    std::vector<Mine> mine;
    std::uint64_t total = 0;
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      if (!rule.names(tensors_[t], at)) continue;
      Box box = whole(tensors_[t].spec.shape);
      for (const auto& [axis, dim] : rule.cuts) box = cut(box, dim, rule.mesh[axis].extent, at[axis]);
      const std::uint64_t count = elements(box);
      total += count;
      mine.push_back(Mine{t, std::move(box), count});
    }
    Range bucket;
    if (rule.bucket) {
      const std::uint64_t part = divide_up(total, rule.mesh[*rule.bucket].extent * rule.align) * rule.align;
      bucket = Range{at[*rule.bucket] * part, (at[*rule.bucket] + 1) * part};
    }
    std::uint64_t cursor = 0;
    for (auto& one : mine) {
      std::optional<Range> range;
      if (rule.bucket) {
        range = Range{std::clamp(bucket.begin, cursor, cursor + one.count) - cursor,
                      std::clamp(bucket.end, cursor, cursor + one.count) - cursor};
        cursor += one.count;
        if (range->begin == range->end) continue;
      } else if (rule.flat) {
        const Box part = cut(Box{{0}, {one.count}}, 0, rule.mesh[*rule.flat].extent, at[*rule.flat]);
        range = Range{part.offsets[0], part.offsets[0] + part.sizes[0]};
      }
      add(rank, one.tensor, std::move(one.box), range);
    }
  }

  std::vector<LayoutBody> bodies_;
  std::vector<std::map<std::size_t, std::uint32_t>> numbers_;
  const std::vector<Tensor>& tensors_;
};

SectionPlacement placement_of(const Json& side, const std::vector<Tensor>& tensors) {
  SideBuilder builder(side["world"], tensors);
  builder.shards(side);
  for (const auto& rule : side.value("rules", Json::array())) builder.rule(rule_of(rule));
  return builder.placement();
}

Value value_of(const Json& json) {
  const std::string kind = json.begin().key();
  const Json& value = json.begin().value();
  if (kind == "i64") return Value{value.is_string() ? std::stoll(value.get<std::string>()) : value.get<std::int64_t>()};
  if (kind == "f64") return Value{value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>()};
  if (kind == "str") return Value{value.get<std::string>()};
  if (kind == "bytes_hex") return Value{Value::Bytes{from_hex(value)}};
  if (kind == "list") {
    Value::List list;
    for (const auto& one : value) list.push_back(value_of(one));
    return Value{std::move(list)};
  }
  if (kind == "by_rank") {
    Value::Map map;
    for (const auto& [rank, one] : value.items()) map.emplace_back(rank, value_of(one));
    return Value{std::move(map)};
  }
  throw std::runtime_error("unknown value " + json.dump());
}

Scope scope_of(const std::string& name) {
  if (name == "replicated") return Scope::replicated;
  return name == "per_rank" ? Scope::per_rank : Scope::splittable;
}

LoadOptions options_of(const Json& json, bool& exact_needs) {
  LoadOptions options;
  if (json.value("missing", "error") == "keep") options.missing = Missing::keep;
  if (json.value("unexpected", "error") == "ignore") options.unexpected = Unexpected::ignore;
  options.cast = json.value("cast", false);
  for (const auto& pair : json.value("rename", Json::array())) options.rename.emplace_back(pair[0], pair[1]);
  for (const auto& resize : json.value("resize", Json::array())) {
    options.resize.push_back(Resize{resize["fqn"], resize["outside"] == "keep" ? Outside::keep : Outside::zero});
  }
  if (json.value("per_rank_items", "fail") == "all") options.per_rank = PerRank::gather;
  exact_needs = options.missing == Missing::error && !options.cast && options.resize.empty();
  return options;
}

ExpectedPhase phase_of(const Json& json) {
  ExpectedPhase phase;
  phase.outcomes = json["outcome"].get<std::vector<std::string>>();
  if (!json.contains("nouns")) return phase;
  const Json& nouns = json["nouns"];
  for (const auto& fqn : nouns.value("fqns", Json::array())) phase.nouns.push_back(fqn);
  for (const auto& rank : nouns.value("ranks", Json::array())) phase.nouns.push_back(std::to_string(rank.get<int>()));
  for (const auto& number : nouns.value("numbers", Json::array())) phase.nouns.push_back(number.dump());
  for (const auto& words : nouns.value("words", Json::array()))
    phase.words.push_back(words.get<std::vector<std::string>>());
  return phase;
}

void read_load(const Json& json, const std::vector<Tensor>& saved, LayoutCase& found) {
  const Json& side = json["load"];
  const auto tensors = side.contains("tensors") ? tensors_of(side["tensors"]) : saved;
  LoadRequest request;
  request.targets.push_back(placement_of(side, tensors));
  const Json options = side.value("options", Json::object());
  request.options = options_of(options, found.exact_needs);
  request.staging_bytes.assign(side["world"], options.value("staging_bytes", std::uint64_t{1} << 62));
  std::map<std::string, Scope> items;
  for (const auto& item : found.items) items.emplace(item.item.name, item.item.scope);
  std::vector<ItemOffer> offers;
  for (const auto& [name, scope] : items) offers.push_back(ItemOffer{"model", name, scope, {}});
  request.items.assign(side["world"], offers);
  found.load = std::move(request);
}

}  // namespace

LayoutCase read_layout_case(const std::string& path) {
  std::ifstream file(path);
  const Json json = Json::parse(file);
  const auto tensors = tensors_of(json["tensors"]);
  LayoutCase found;
  found.id = json["id"];
  found.with_content = json["mode"] == "bytes";
  found.save = placement_of(json["save"], tensors);
  for (const auto& item : json["save"].value("items", Json::array())) {
    found.items.push_back(StoredItem{Rank(item["rank"].get<std::uint32_t>()),
                                     Item{"model", item["name"], scope_of(item["scope"]), value_of(item["value"])}});
  }
  std::stable_sort(found.items.begin(), found.items.end(), [](const StoredItem& a, const StoredItem& b) {
    return std::pair(a.item.name, a.rank) < std::pair(b.item.name, b.rank);
  });
  if (json.contains("load")) read_load(json, tensors, found);
  const Json& expect = json["expect"];
  if (expect.contains("save")) found.expected_save = phase_of(expect["save"]);
  if (expect.contains("load")) found.expected_load = phase_of(expect["load"]);
  if (expect.contains("load_if_saved")) found.expected_load = phase_of(expect["load_if_saved"]);
  const Json counts = expect.value("counts", Json::object());
  for (const auto& [name, value] : counts.items()) {
    found.counts[name] = std::stoull(value.get<std::string>());
  }
  if (expect.contains("report")) {
    found.missing = expect["report"]["missing"].get<std::vector<std::string>>();
    found.unexpected = expect["report"]["unexpected"].get<std::vector<std::string>>();
  }
  if (expect.contains("items")) {
    found.expected_items.emplace(json["load"]["world"].get<std::size_t>());
    for (const auto& [rank, items] : expect["items"].items()) {
      for (const auto& [name, value] : items.items()) (*found.expected_items)[std::stoul(rank)][name] = value_of(value);
    }
  }
  return found;
}

}  // namespace vckpt
