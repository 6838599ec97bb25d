// Errors as values. Result<T> has std::expected's names; its codes say what the caller should do, its message carries
// the nouns (fqn, box, file, rank, host, phase). Part of the public API: no third-party type, nothing throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace vckpt {

enum class Code : std::uint8_t {
  invalid = 1,      // fix the request
  not_found = 2,    // nothing there
  corrupt = 3,      // use another copy
  unavailable = 4,  // reconnect, retry
  exhausted = 5,    // back off, or give more
  aborted = 6,      // superseded or given up; the state before it still holds
  internal = 7,     // our bug
};

std::string_view to_string(Code code);

struct Error {
  Code code = Code::internal;
  std::string message;

  bool operator==(const Error&) const = default;

  // The same error with `what: ` in front of its message.
  Error with_context(std::string_view what) const;
};

Error invalid(std::string message);
Error not_found(std::string message);
Error corrupt(std::string message);
Error unavailable(std::string message);
Error exhausted(std::string message);
Error aborted(std::string message);
Error internal(std::string message);

// A T or an Error. Reading the wrong side is a bug and ends the process (VCKPT_ASSERT).
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }
  T value_or(T fallback) const& { return has_value() ? value() : std::move(fallback); }

  const Error& error() const;

 private:
  T* checked();

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const;

 private:
  std::optional<Error> error_;
};

// Ends the process after one line on stderr: for states that only a bug of ours can reach.
[[noreturn]] void fail_assertion(const char* expression, const char* file, int line);

}  // namespace vckpt

#define VCKPT_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::vckpt::fail_assertion(#expression, __FILE__, __LINE__))

#define VCKPT_CONCAT_(a, b) a##b
#define VCKPT_CONCAT(a, b) VCKPT_CONCAT_(a, b)
#define VCKPT_TRY_NAMED_(name, declaration, expression)                  \
  auto name = (expression);                                              \
  if (!name.has_value()) return ::vckpt::Error(std::move(name).error()); \
  declaration = *std::move(name)

// VCKPT_TRY(auto x, f()): x is f's value, or the function returns f's error.
#define VCKPT_TRY(declaration, expression) VCKPT_TRY_NAMED_(VCKPT_CONCAT(vckpt_try_, __LINE__), declaration, expression)

// VCKPT_TRY_VOID(f()): goes on, or the function returns f's error.
#define VCKPT_TRY_VOID(expression)                                           \
  do {                                                                       \
    if (auto vckpt_try_result = (expression); !vckpt_try_result.has_value()) \
      return ::vckpt::Error(vckpt_try_result.error());                       \
  } while (false)

namespace vckpt {

template <typename T>
const Error& Result<T>::error() const {
  VCKPT_ASSERT(state_.index() == 1);
  return std::get<1>(state_);
}

template <typename T>
T* Result<T>::checked() {
  VCKPT_ASSERT(state_.index() == 0);
  return &std::get<0>(state_);
}

inline const Error& Result<void>::error() const {
  VCKPT_ASSERT(error_.has_value());
  return *error_;
}

}  // namespace vckpt
