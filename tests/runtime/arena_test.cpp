#include "runtime/arena.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using namespace vckpt;

namespace {

constexpr std::uint64_t page = arena_page_bytes;

}  // namespace

TEST_CASE("a lease starts on a page, has the length that was asked for, and can be written") {
  Arena arena(16 * page);
  auto lease = arena.lease(page + 1);
  REQUIRE(lease.has_value());
  CHECK(reinterpret_cast<std::uintptr_t>(lease->bytes().data()) % page == 0);
  CHECK(lease->bytes().size() == page + 1);
  std::memset(lease->bytes().data(), 7, lease->bytes().size());
  CHECK(arena.leased_bytes() == 2 * page);
  CHECK(Arena::charged_bytes(page + 1) == 2 * page);
}

TEST_CASE("the budget can be leased to the last page and not a page more") {
  Arena arena(4 * page);
  auto most = arena.lease(3 * page);
  auto last = arena.lease(page);
  REQUIRE(most.has_value());
  REQUIRE(last.has_value());
  const auto over = arena.lease(1);
  REQUIRE_FALSE(over.has_value());
  CHECK(over.error().code == Code::exhausted);
  CHECK(over.error().message.find("budget of 16384 bytes") != std::string::npos);
  CHECK(over.error().message.find("staging of 1 bytes") != std::string::npos);
  *last = Lease();
  CHECK(arena.lease(1).has_value());
}

TEST_CASE("a request above the whole budget says that it can never fit") {
  Arena arena(4 * page);
  for (const std::uint64_t length : {4 * page + 1, std::uint64_t{1} << 63, UINT64_MAX}) {
    const auto lease = arena.lease(length);
    REQUIRE_FALSE(lease.has_value());
    CHECK(lease.error().code == Code::exhausted);
    CHECK(lease.error().message.find("can never fit") != std::string::npos);
  }
  CHECK(arena.peak_bytes() == 0);
}

TEST_CASE("an empty lease costs nothing and is still a lease") {
  Arena arena(0);
  const auto lease = arena.lease(0);
  REQUIRE(lease.has_value());
  CHECK(static_cast<bool>(*lease));
  CHECK(lease->bytes().empty());
  CHECK(arena.leased_bytes() == 0);
}

TEST_CASE("memory that was given back is used again") {
  Arena arena(8 * page);
  const std::byte* first = nullptr;
  {
    auto lease = arena.lease(4 * page);
    REQUIRE(lease.has_value());
    first = lease->bytes().data();
  }
  CHECK(arena.leased_bytes() == 0);
  auto half = arena.lease(2 * page);
  auto other_half = arena.lease(2 * page);
  REQUIRE(half.has_value());
  REQUIRE(other_half.has_value());
  CHECK(half->bytes().data() == first);
  CHECK(other_half->bytes().data() == first + 2 * page);
}

TEST_CASE("the peak is the most that was leased at once, and can be reset") {
  Arena arena(8 * page);
  {
    auto a = arena.lease(3 * page);
    auto b = arena.lease(2 * page);
    REQUIRE((a.has_value() && b.has_value()));
  }
  auto c = arena.lease(page);
  REQUIRE(c.has_value());
  CHECK(arena.peak_bytes() == 5 * page);
  arena.reset_peak();
  CHECK(arena.peak_bytes() == page);
}

TEST_CASE("a moved lease is given back once") {
  Arena arena(2 * page);
  auto lease = arena.lease(page);
  REQUIRE(lease.has_value());
  Lease moved = *std::move(lease);
  Lease again;
  again = std::move(moved);
  CHECK_FALSE(static_cast<bool>(moved));
  CHECK(arena.leased_bytes() == page);
  again = Lease();
  CHECK(arena.leased_bytes() == 0);
}

TEST_CASE("whatever fits what is free can be leased, in any order of sizes, and leases never overlap") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Arena arena(32 * page);
  std::vector<Lease> leases;
  std::uint64_t leased = 0;
  for (int step = 0; step < 2000; ++step) {
    const std::uint64_t length = random() % (12 * page) + 1;
    auto lease = arena.lease(length);
    REQUIRE(lease.has_value() == (leased + Arena::charged_bytes(length) <= arena.budget_bytes()));
    if (lease) {
      leased += Arena::charged_bytes(length);
      leases.push_back(*std::move(lease));
      std::memset(leases.back().bytes().data(), step & 0xFF, length);
      leases.back().bytes()[0] = static_cast<std::byte>(leases.back().bytes().size() & 0xFF);
    } else {
      const auto victim = random() % leases.size();
      REQUIRE(leases[victim].bytes()[0] == static_cast<std::byte>(leases[victim].bytes().size() & 0xFF));
      leased -= Arena::charged_bytes(leases[victim].bytes().size());
      leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    REQUIRE(arena.leased_bytes() == leased);
    REQUIRE(arena.peak_bytes() <= arena.budget_bytes());
  }
}
