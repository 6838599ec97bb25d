// Random control messages: the rest of RandomValues.
#include "tests/schema/random_values.h"

namespace vckpt::testing {

std::vector<SectionOffer> RandomValues::offers() {
  std::vector<SectionOffer> offers;
  for (const char* name : {"a", "model", "optimizer"}) {
    if (below(2)) continue;
    SectionOffer offer{name, digest(), {}};
    for (std::uint64_t i = below(4); i > 0; --i) offer.coordinates.push_back(static_cast<std::uint32_t>(number()));
    offers.push_back(std::move(offer));
  }
  return offers;
}

std::vector<ItemOffer> RandomValues::item_offers() {
  std::vector<ItemOffer> items;
  for (std::uint64_t i = below(4); i > 0; --i) {
    items.push_back(ItemOffer{section(), fqn(i), static_cast<Scope>(1 + below(3)), digest()});
  }
  return items;
}

std::vector<Slice> RandomValues::slices(const std::vector<StoredTensor>& tensors) {
  std::vector<Slice> slices;
  for (std::uint64_t i = below(3); i > 0; --i) {
    const auto tensor = static_cast<std::uint32_t>(below(tensors.size()));
    const auto& shape = tensors[tensor].spec.shape;
    const auto begin = below(1 << 30);
    slices.push_back(Slice{tensor, box_within(shape), number(), begin, begin + below(1 << 20), box_within(shape)});
  }
  return slices;
}

SaveSlice RandomValues::save_slice() {
  SaveSlice slice{Ordinal(number()), id(), digest(), {}, {}};
  for (std::uint64_t i = below(3); i > 0; --i) {
    auto specs = tensors();
    auto held = pieces(specs);
    slice.sections.push_back(SectionSlice{section(), std::move(specs), std::move(held)});
  }
  for (std::uint64_t i = below(3); i > 0; --i) slice.items.push_back(ItemKey{section(), fqn(i)});
  return slice;
}

LoadSlice RandomValues::load_slice() {
  LoadSlice slice;
  slice.ordinal = Ordinal(number());
  slice.id = id();
  slice.generation = static_cast<std::uint32_t>(number());
  slice.rounds = static_cast<std::uint32_t>(4 + below(4));
  for (auto& spec : tensors()) slice.tensors.push_back(StoredTensor{section(), std::move(spec), fqn(below(100))});
  for (std::uint64_t i = 1 + below(2); i > 0; --i) {
    FileRecord record = file(i);
    record.data_bytes = 5 * (1 << 20);
    record.chunk_digests.assign(3, static_cast<std::uint32_t>(number()));
    slice.files.push_back(ReadFile{std::move(record), 1 + below(2)});
  }
  for (std::uint32_t round = 0; round < slice.rounds; ++round) {
    const auto read_file = static_cast<std::uint32_t>(below(slice.files.size()));
    const auto skipped = below(3);
    slice.reads.push_back(
        ReadRun{Round(round), read_file, slice.files[read_file].first_chunk + skipped, 1 + below(3 - skipped)});
  }
  for (std::uint32_t round = 0; round < slice.rounds; ++round) {
    SendSlices send{Round(round), Rank(static_cast<std::uint32_t>(below(9))), slices(slice.tensors), {}};
    for (std::size_t i = 0; i < send.slices.size(); ++i) {
      send.runs.push_back(static_cast<std::uint32_t>(below(slice.reads.size())));
    }
    ReceiveSlices receive{
        Round(round), Rank(static_cast<std::uint32_t>(below(9))), number(), slices(slice.tensors), {}};
    if (below(2)) receive.runs.assign(receive.slices.size(), 0);
    slice.sends.push_back(std::move(send));
    slice.receives.push_back(std::move(receive));
  }
  for (std::uint64_t i = below(3); i > 0; --i) {
    const auto tensor = static_cast<std::uint32_t>(below(slice.tensors.size()));
    const auto& shape = slice.tensors[tensor].spec.shape;
    slice.gaps.push_back(Gap{tensor, box_within(shape), box_within(shape), below(2) ? Outside::zero : Outside::keep});
  }
  for (std::uint64_t i = below(3); i > 0; --i) slice.items.push_back(item(i));
  for (std::uint64_t i = below(3); i > 0; --i) slice.missing.push_back("model:" + fqn(i));
  for (std::uint64_t i = below(3); i > 0; --i) slice.unexpected.push_back("model:" + fqn(i));
  slice.meta = text();
  return slice;
}

Message RandomValues::content(std::size_t kind) {
  const auto phase = static_cast<Phase>(1 + below(9));
  const auto ordinal = Ordinal(number());
  switch (kind) {
    case 0: return Join{text(), static_cast<std::uint32_t>(number()), text(), number(), text(), number()};
    case 1: {
      SaveOptions options{below(2) ? OverBudget::wait : OverBudget::fail, text(), below(2) == 1};
      return SaveCall{ordinal, Step(number()), offers(), item_offers(), std::move(options)};
    }
    case 2: {
      LoadCall call{ordinal, newest, offers(), item_offers(), {}, number()};
      if (below(3) == 0) call.selector = Step(number());
      if (below(3) == 0) call.selector = id();
      call.options.missing = below(2) ? Missing::error : Missing::keep;
      call.options.unexpected = below(2) ? Unexpected::error : Unexpected::ignore;
      call.options.cast = below(2) == 1;
      call.options.per_rank = static_cast<PerRank>(1 + below(3));
      for (std::uint64_t i = below(3); i > 0; --i) {
        call.options.only.push_back(text());
        call.options.rename.emplace_back(text(), text());
        call.options.resize.push_back(Resize{text(), below(2) ? Outside::zero : Outside::keep});
      }
      return call;
    }
    case 3: return Bodies{{body(), body(), LayoutBody{}}};
    case 4: return Progress{ordinal, phase, number()};
    case 5: return Receipt{ordinal, digest(), {file(1), file(2)}, {item(1), item(2)}, number()};
    case 6: return LoadReceipt{ordinal, number(), number(), number(), number()};
    case 7: return Failed{ordinal, phase, error()};
    case 8: return Goodbye{};
    case 9: {
      Joined joined{Session(number()), text(), number(), number(), {}};
      for (std::uint32_t i = 0; i < below(5); ++i) {
        joined.peers.push_back(Peer{Rank(i), text(), text(), Incarnation(number())});
      }
      return joined;
    }
    case 10: return Refused{error()};
    case 11: return NeedBodies{ordinal, {digest(), digest()}};
    case 12: return save_slice();
    case 13: return Committed{ordinal, id(), report()};
    case 14: return Aborted{ordinal, error()};
    case 15: return load_slice();
    case 16: {
      Loaded loaded{ordinal, std::nullopt, report()};
      if (below(2)) loaded.id = id();
      return loaded;
    }
    default: return Pulse{};
  }
}

EnvelopedMessage RandomValues::message(std::size_t kind) {
  EnvelopedMessage message{{}, content(kind)};
  message.envelope.run = Nonce(number());
  message.envelope.epoch = Epoch(number());
  message.envelope.session = Session(number());
  message.envelope.rank = Rank(static_cast<std::uint32_t>(number()));
  message.envelope.incarnation = Incarnation(number());
  message.envelope.attempt = Attempt(number());
  message.envelope.revision = Revision(static_cast<std::uint32_t>(number()));
  message.envelope.sequence = number();
  return message;
}

}  // namespace vckpt::testing
