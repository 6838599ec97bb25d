#include "served_session.h"

#include <utility>

namespace vckpt::coordinator {

bool ServedSession::answer_ended(CallContext& context, Rank rank, Ordinal ordinal) {
  if (const auto found = ended_.find(ordinal); found != ended_.end()) {
    context.out.send(roster_, rank, found->second.attempt, found->second.result);
    return true;
  }
  if (first_open_ <= ordinal) return false;
  auto forgotten = unavailable("call " + std::to_string(ordinal.value) + " ended long ago; its result is not kept");
  context.out.send(roster_, rank, Attempt{}, Aborted{ordinal, std::move(forgotten)});
  return true;
}

template <typename Attempt, typename CallMessage>
bool ServedSession::on_call(CallContext& context, Rank rank, const CallMessage& call) {
  const auto ordinal = call.ordinal;
  if (ordinal.value == 0 || ordinal.value - 1 >= first_open_.value + calls_in_flight_max) return false;
  if (answer_ended(context, rank, ordinal)) return true;
  auto found = calls_.find(ordinal);
  if (found == calls_.end() && refusal_) {
    ended_[ordinal] = {Aborted{ordinal, *refusal_}, vckpt::Attempt{}};
    return answer_ended(context, rank, ordinal);
  }
  if (found == calls_.end()) {
    found = calls_.try_emplace(ordinal, Attempt(ordinal, roster_.world_size(), context.now)).first;
  }
  std::visit(
      [&](auto& attempt) {
        if constexpr (std::is_same_v<std::decay_t<decltype(attempt)>, Attempt>) {
          attempt.on_call(context, rank, call);
        } else {
          attempt.fail(context,
                       invalid("call " + std::to_string(ordinal.value) + " is a save on some ranks and a load on " +
                               "others: " + roster_.describe(rank) + " disagrees with the first"));
        }
        if (attempt.ended() && !attempt.called_by(rank)) {
          context.out.send(roster_, rank, vckpt::Attempt{}, attempt.result());
        }
      },
      found->second);
  return true;
}

// The open call that a receipt belongs to; one that has ended is answered with its result.
template <typename Attempt, typename ReceiptMessage>
Attempt* ServedSession::open_call(CallContext& context, Rank rank, const ReceiptMessage& receipt) {
  const auto found = calls_.find(receipt.ordinal);
  if (found != calls_.end()) return std::get_if<Attempt>(&found->second);
  answer_ended(context, rank, receipt.ordinal);
  return nullptr;
}

bool ServedSession::on_failed(CallContext& context, Rank rank, const Failed& failed) {
  const auto ordinal = failed.ordinal;
  if (ordinal.value == 0 || ordinal.value - 1 >= first_open_.value + calls_in_flight_max) return false;
  if (answer_ended(context, rank, ordinal)) return true;
  const auto error =
      failed.error.with_context(roster_.describe(rank) + " failed in phase " + std::string(to_string(failed.phase)));
  const auto found = calls_.find(ordinal);
  if (found == calls_.end()) {  // before any rank called it: the others will hear of it when they call
    ended_[ordinal] = {Aborted{ordinal, error}, Attempt{}};
    return answer_ended(context, rank, ordinal);
  }
  std::visit(
      [&](auto& attempt) {
        attempt.fail(context, error);
        if (attempt.ended() && !attempt.called_by(rank)) {
          context.out.send(roster_, rank, vckpt::Attempt{}, attempt.result());
        }
      },
      found->second);
  return true;
}

void ServedSession::on_progress(CallContext& context, Rank rank, const Progress& progress) {
  auto& member = roster_.members[rank.value];
  if (member.progress == progress) return;
  member.progress = progress;
  member.moved = context.now;
}

bool ServedSession::on_message(CallContext& context, Rank rank, const Envelope& envelope, const Message& message) {
  if (const auto* save = std::get_if<SaveCall>(&message)) return on_call<SaveAttempt>(context, rank, *save);
  if (const auto* load = std::get_if<LoadCall>(&message)) return on_call<LoadAttempt>(context, rank, *load);
  if (const auto* failed = std::get_if<Failed>(&message)) return on_failed(context, rank, *failed);
  if (const auto* progress = std::get_if<Progress>(&message)) {
    on_progress(context, rank, *progress);
    return true;
  }
  if (const auto* receipt = std::get_if<Receipt>(&message)) {
    if (auto* save = open_call<SaveAttempt>(context, rank, *receipt))
      save->on_receipt(context, rank, envelope, *receipt);
    return true;
  }
  if (const auto* receipt = std::get_if<LoadReceipt>(&message)) {
    if (auto* load = open_call<LoadAttempt>(context, rank, *receipt)) load->on_receipt(context, rank, *receipt);
    return true;
  }
  if (std::holds_alternative<Goodbye>(message)) {
    auto& member = roster_.members[rank.value];
    if (!member.left) context.out.log(roster_.describe(rank) + " leaves");
    member.left = true;
    return true;
  }
  return false;
}

void ServedSession::advance(CallContext& context) {
  auto expected = first_open_;
  Turn turn{true, true};
  for (auto call = calls_.begin(); call != calls_.end(); ++expected.value) {
    while (ended_.contains(expected)) ++expected.value;
    if (call->first != expected) turn = {};  // one before was not called yet by any rank that we heard of
    expected = call->first;
    if (auto* save = std::get_if<SaveAttempt>(&call->second)) {
      save->advance(context, turn);
      if (!save->ended()) {
        turn = {turn.may_start && save->started(), false};
        ++call;
        continue;
      }
      if (save->to_remove()) removals_.push_back(*save->to_remove());
      ended_[call->first] = {save->result(), save->attempt()};
    } else {
      auto& load = std::get<LoadAttempt>(call->second);
      load.advance(context, turn.may_start && turn.may_decide);
      if (!load.ended()) {
        turn = {};
        ++call;
        continue;
      }
      ended_[call->first] = {load.result(), Attempt{}};
    }
    call = calls_.erase(call);
  }
  settle();
}

void ServedSession::settle() {
  while (ended_.contains(first_open_)) ++first_open_.value;
  while (ended_.size() > results_kept_max && ended_.begin()->first < first_open_) ended_.erase(ended_.begin());
}

void ServedSession::tick(CallContext& context) {
  const bool gap = !calls_.empty() && !(calls_.begin()->first == first_open_);
  for (auto& [ordinal, call] : calls_) {
    std::visit(
        [&](auto& attempt) {
          attempt.tick(context);
          if (gap && !attempt.started() && attempt.changed() + context.settings.deadline < context.now) {
            attempt.fail(context, unavailable("call " + std::to_string(ordinal.value) + " waited for call " +
                                              std::to_string(first_open_.value) + ", which no rank has made"));
          }
        },
        call);
  }
}

void ServedSession::fail_all(CallContext& context, const Error& error) {
  for (auto& [ordinal, call] : calls_) {
    std::visit([&](auto& attempt) { attempt.fail(context, error); }, call);
  }
}

void ServedSession::abandon(CallContext& context, const Error& error) {
  for (auto& [ordinal, call] : calls_) {
    const auto* save = std::get_if<SaveAttempt>(&call);
    if (save != nullptr && save->may_be_committed()) continue;  // the worker reads the decision
    for (std::uint32_t rank = 0; rank < roster_.world_size(); ++rank) {
      const bool waits =
          std::visit([&](auto& attempt) { return !attempt.ended() && attempt.called_by(Rank{rank}); }, call);
      if (waits) context.out.send(roster_, Rank{rank}, Attempt{}, Aborted{ordinal, error});
    }
  }
}

}  // namespace vckpt::coordinator
