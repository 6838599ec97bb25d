// The envelope, and which message is in it.
#include "schema/codec_control.h"

namespace vckpt::wire {

void write(Error::Builder builder, const vckpt::Error& error) {
  builder.setCode(static_cast<std::uint8_t>(error.code));
  builder.setMessage(text(error.message));
}

vckpt::Error read(Error::Reader reader) {
  return {enum_of(reader.getCode(), Code::internal, "code"), text(reader.getMessage())};
}

namespace {

void write(Peers::Builder builder, const std::vector<Peer>& peers) {
  Numbers32 ranks;
  Numbers64 incarnations;
  for (const auto& peer : peers) {
    ranks.push_back(peer.rank.value);
    incarnations.push_back(peer.incarnation.value);
  }
  fill(builder.initRanks(list_size(ranks.size())), ranks);
  write_names(builder.initHosts(), peers, [](const Peer& peer) -> std::string_view { return peer.host; });
  write_names(builder.initTransportAddresses(), peers,
              [](const Peer& peer) -> std::string_view { return peer.transport_address; });
  fill(builder.initIncarnations(list_size(incarnations.size())), incarnations);
}

std::vector<Peer> read(Peers::Reader reader) {
  const auto ranks = reader.getRanks();
  auto hosts = within("hosts", [&] { return wire::read(reader.getHosts()); });
  auto addresses = within("transport addresses", [&] { return wire::read(reader.getTransportAddresses()); });
  const auto incarnations = reader.getIncarnations();
  require(hosts.size() == ranks.size() && addresses.size() == ranks.size() && incarnations.size() == ranks.size(),
          "columns of unequal length");
  std::vector<Peer> peers;
  peers.reserve(hosts.size());
  for (unsigned i = 0; i < ranks.size(); ++i) {
    require(ranks[i] == i, "not all ranks in order");
    peers.push_back(Peer{Rank(i), std::move(hosts[i]), std::move(addresses[i]), Incarnation(incarnations[i])});
  }
  return peers;
}

void write(Joined::Builder builder, const vckpt::Joined& joined) {
  builder.setSession(joined.session.value);
  builder.setRunName(text(joined.run_name));
  builder.setDeadlineMs(joined.deadline_ms);
  builder.setPulseMs(joined.pulse_ms);
  write(builder.initPeers(), joined.peers);
}

vckpt::Joined read(Joined::Reader reader) {
  return {Session(reader.getSession()), text(reader.getRunName()), reader.getDeadlineMs(), reader.getPulseMs(),
          within("peers", [&] { return read(reader.getPeers()); })};
}

void write(NeedBodies::Builder builder, const vckpt::NeedBodies& need) {
  std::string digests;
  for (const auto& digest : need.digests) {
    digests.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  }
  builder.setOrdinal(need.ordinal.value);
  builder.setDigests(blob(digests));
}

vckpt::NeedBodies read(NeedBodies::Reader reader) {
  return {Ordinal(reader.getOrdinal()), digests_of(reader.getDigests())};
}

void write(Report::Builder builder, const vckpt::Report& report) {
  builder.setRanks(report.ranks);
  builder.setPlanCached(report.plan_cached);
  builder.setUniqueBytes(report.unique_bytes);
  builder.setBytesWritten(report.bytes_written);
  builder.setStorageBytesRead(report.storage_bytes_read);
  builder.setBytesNeeded(report.bytes_needed);
  builder.setBytesReceived(report.bytes_received);
  builder.setMostLoadedOverMean(report.most_loaded_over_mean);
  builder.setMostLoadedOverBound(report.most_loaded_over_bound);
  builder.setPlanSeconds(report.plan_seconds);
  builder.setStallSeconds(report.stall_seconds);
  builder.setStallCopySeconds(report.stall_copy_seconds);
  builder.setStallPeersSeconds(report.stall_peers_seconds);
  builder.setDurableSeconds(report.durable_seconds);
  builder.setStagingPeakBytes(report.staging_peak_bytes);
}

vckpt::Report read(Report::Reader reader) {
  vckpt::Report report;
  report.ranks = reader.getRanks();
  report.plan_cached = reader.getPlanCached();
  report.unique_bytes = reader.getUniqueBytes();
  report.bytes_written = reader.getBytesWritten();
  report.storage_bytes_read = reader.getStorageBytesRead();
  report.bytes_needed = reader.getBytesNeeded();
  report.bytes_received = reader.getBytesReceived();
  report.most_loaded_over_mean = reader.getMostLoadedOverMean();
  report.most_loaded_over_bound = reader.getMostLoadedOverBound();
  report.plan_seconds = reader.getPlanSeconds();
  report.stall_seconds = reader.getStallSeconds();
  report.stall_copy_seconds = reader.getStallCopySeconds();
  report.stall_peers_seconds = reader.getStallPeersSeconds();
  report.durable_seconds = reader.getDurableSeconds();
  report.staging_peak_bytes = reader.getStagingPeakBytes();
  return report;
}

Committed read_committed(Outcome::Reader reader) {
  return {Ordinal(reader.getOrdinal()), wire::read(reader.getId()), read(reader.getReport())};
}

Loaded read_loaded(Outcome::Reader reader) {
  Loaded loaded;
  loaded.ordinal = Ordinal(reader.getOrdinal());
  if (reader.hasId()) loaded.id = wire::read(reader.getId());
  loaded.report = read(reader.getReport());
  return loaded;
}

struct MessageWriter {
  Message::Builder builder;
  void operator()(const vckpt::Join& value) { write(builder.initJoin(), value); }
  void operator()(const vckpt::SaveCall& value) { write(builder.initSaveCall(), value); }
  void operator()(const vckpt::LoadCall& value) { write(builder.initLoadCall(), value); }
  void operator()(const vckpt::Bodies& value) { write(builder.initBodies(), value); }
  void operator()(const vckpt::Progress& value) { write(builder.initProgress(), value); }
  void operator()(const vckpt::Receipt& value) { write(builder.initReceipt(), value); }
  void operator()(const vckpt::LoadReceipt& value) { write(builder.initLoadReceipt(), value); }
  void operator()(const vckpt::Failed& value) { write(builder.initFailed(), value); }
  void operator()(const Goodbye&) { builder.setGoodbye(); }
  void operator()(const vckpt::Joined& value) { write(builder.initJoined(), value); }
  void operator()(const Refused& value) { write(builder.initRefused(), value.error); }
  void operator()(const vckpt::NeedBodies& value) { write(builder.initNeedBodies(), value); }
  void operator()(const vckpt::SaveSlice& value) { write(builder.initSaveSlice(), value); }
  void operator()(const Committed& value) {
    auto outcome = builder.initCommitted();
    outcome.setOrdinal(value.ordinal.value);
    write(outcome.initId(), value.id);
    write(outcome.initReport(), value.report);
  }
  void operator()(const vckpt::Aborted& value) {
    auto aborted = builder.initAborted();
    aborted.setOrdinal(value.ordinal.value);
    write(aborted.initError(), value.error);
  }
  void operator()(const vckpt::LoadSlice& value) { write(builder.initLoadSlice(), value); }
  void operator()(const Loaded& value) {
    auto outcome = builder.initLoaded();
    outcome.setOrdinal(value.ordinal.value);
    if (value.id) write(outcome.initId(), *value.id);
    write(outcome.initReport(), value.report);
  }
  void operator()(const Pulse&) { builder.setPulse(); }
};

}  // namespace

static void write(Message::Builder builder, const EnvelopedMessage& message) {
  const auto& envelope = message.envelope;
  builder.setRun(envelope.run.value);
  builder.setEpoch(envelope.epoch.value);
  builder.setSession(envelope.session.value);
  builder.setIncarnation(envelope.incarnation.value);
  builder.setAttempt(envelope.attempt.value);
  builder.setSequence(envelope.sequence);
  builder.setRank(envelope.rank.value);
  builder.setRevision(envelope.revision.value);
  std::visit(MessageWriter{builder}, message.message);
}

static vckpt::Message read_content(Message::Reader reader) {
  switch (reader.which()) {
    case Message::JOIN: return within("join", [&] { return wire::read(reader.getJoin()); });
    case Message::SAVE_CALL: return within("save call", [&] { return wire::read(reader.getSaveCall()); });
    case Message::LOAD_CALL: return within("load call", [&] { return wire::read(reader.getLoadCall()); });
    case Message::BODIES: return within("bodies", [&] { return wire::read(reader.getBodies()); });
    case Message::PROGRESS: return within("progress", [&] { return wire::read(reader.getProgress()); });
    case Message::RECEIPT: return within("receipt", [&] { return wire::read(reader.getReceipt()); });
    case Message::LOAD_RECEIPT: return within("load receipt", [&] { return wire::read(reader.getLoadReceipt()); });
    case Message::FAILED: return within("failed", [&] { return wire::read(reader.getFailed()); });
    case Message::GOODBYE: return Goodbye{};
    case Message::JOINED: return within("joined", [&] { return read(reader.getJoined()); });
    case Message::REFUSED: return within("refused", [&] { return Refused{wire::read(reader.getRefused())}; });
    case Message::NEED_BODIES: return within("need bodies", [&] { return read(reader.getNeedBodies()); });
    case Message::SAVE_SLICE: return within("save slice", [&] { return wire::read(reader.getSaveSlice()); });
    case Message::COMMITTED: return within("committed", [&] { return read_committed(reader.getCommitted()); });
    case Message::ABORTED:
      return within("aborted", [&] {
        const auto aborted = reader.getAborted();
        return vckpt::Aborted{Ordinal(aborted.getOrdinal()), wire::read(aborted.getError())};
      });
    case Message::LOAD_SLICE: return within("load slice", [&] { return wire::read(reader.getLoadSlice()); });
    case Message::LOADED: return within("loaded", [&] { return read_loaded(reader.getLoaded()); });
    case Message::PULSE: return Pulse{};
    case Message::UNSET: break;
  }
  malformed("no such kind of message");
}

static EnvelopedMessage read(Message::Reader reader) {
  EnvelopedMessage message{{}, read_content(reader)};
  auto& envelope = message.envelope;
  envelope.run = Nonce(reader.getRun());
  envelope.epoch = Epoch(reader.getEpoch());
  envelope.session = Session(reader.getSession());
  envelope.incarnation = Incarnation(reader.getIncarnation());
  envelope.attempt = Attempt(reader.getAttempt());
  envelope.sequence = reader.getSequence();
  envelope.rank = Rank(reader.getRank());
  envelope.revision = Revision(reader.getRevision());
  return message;
}

}  // namespace vckpt::wire

namespace vckpt {

Bytes encode(const EnvelopedMessage& message) {
  return wire::encode_as<wire::Message>(
      message, [](auto builder, const EnvelopedMessage& value) { wire::write(builder, value); });
}

Result<EnvelopedMessage> decode_message(std::span<const std::byte> bytes) {
  return wire::decode_as<wire::Message, EnvelopedMessage>("control message", bytes,
                                                          [](auto reader) { return wire::read(reader); });
}

}  // namespace vckpt
