// Groups whose ranks are engine threads of one process.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "group/group.h"

namespace ingot {

namespace {

// What a rank does next. All ranks must do the same, except that sends meet receives.
struct Offer {
  const char* what = "";
  int64_t bytes = 0;
  const char* in = nullptr;
};

// Room is where the ranks of a group meet.
class Room {
 public:
  explicit Room(int size)
      : size(size), offers_(size_t(size)), joined_(size_t(size)), mail_(size_t(size) * size_t(size)) {}

  const int size;

  void join(int rank) {
    std::lock_guard lock(lock_);
    if (joined_[size_t(rank)]) {
      throw std::runtime_error("rank " + std::to_string(rank) + " is taken");
    }
    joined_[size_t(rank)] = true;
  }

  // Ranks that wait for one that leaves fail at once.
  void leave(int rank) {
    std::lock_guard lock(lock_);
    end("rank " + std::to_string(rank) + " left the group");
  }

  // Waits for the offers of all ranks, calls use with them, and waits until all ranks have used them.
  void meet(int rank, Limit limit, const Offer& offer, const std::function<void(const std::vector<Offer>&)>& use) {
    std::unique_lock lock(lock_);
    check();
    offers_[size_t(rank)] = offer;
    sync(lock, limit, offer.what);
    for (const auto& o : offers_) {
      if (std::strcmp(o.what, offer.what) != 0 || o.bytes != offer.bytes) {
        end("ranks disagree: rank " + std::to_string(rank) + " calls " + offer.what + " with " +
            std::to_string(offer.bytes) + " bytes, another one " + o.what + " with " + std::to_string(o.bytes));
        check();
      }
    }
    lock.unlock();
    use(offers_);  // nobody writes to them before the second sync
    lock.lock();
    sync(lock, limit, offer.what);
  }

  void send(int from, int to, Limit limit, const Offer& offer) {
    std::unique_lock lock(lock_);
    check();
    auto& box = mail_[size_t(from * size + to)];
    box = &offer;
    changed_.notify_all();
    try {
      await(lock, limit, "send", [&] { return box == nullptr; });
    } catch (...) {
      box = nullptr;
      throw;
    }
  }

  void receive(int from, int to, Limit limit, char* out, int64_t bytes) {
    std::unique_lock lock(lock_);
    check();
    auto& box = mail_[size_t(from * size + to)];
    await(lock, limit, "receive", [&] { return box != nullptr; });
    if (box->bytes != bytes) {
      end("ranks disagree: rank " + std::to_string(from) + " sends " + std::to_string(box->bytes) + " bytes, rank " +
          std::to_string(to) + " wants " + std::to_string(bytes));
      check();
    }
    std::memcpy(out, box->in, size_t(bytes));
    box = nullptr;
    changed_.notify_all();
  }

 private:
  void check() const {
    if (!broken_.empty()) {
      throw std::runtime_error("the group has ended: " + broken_);
    }
  }

  void end(const std::string& why) {
    if (broken_.empty()) {
      broken_ = why;
    }
    changed_.notify_all();
  }

  template <class Done>
  void await(std::unique_lock<std::mutex>& lock, Limit limit, const char* what, Done done) {
    if (!changed_.wait_for(lock, limit, [&] { return done() || !broken_.empty(); })) {
      end("no progress in " + std::string(what) + " for " + std::to_string(limit.count()) + " ms");
    }
    if (!done()) {
      check();
    }
  }

  void sync(std::unique_lock<std::mutex>& lock, Limit limit, const char* what) {
    const int64_t round = round_;
    if (++arrived_ == size) {
      arrived_ = 0;
      round_++;
      changed_.notify_all();
      return;
    }
    await(lock, limit, what, [&] { return round_ != round; });
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Offer> offers_;
  std::vector<bool> joined_;
  std::vector<const Offer*> mail_;  // by sender and receiver
  int arrived_ = 0;
  int64_t round_ = 0;
  std::string broken_;
};

std::shared_ptr<Room> room(const std::string& name, int size) {
  static std::mutex lock;
  static auto* rooms = new std::map<std::string, std::weak_ptr<Room>>;
  std::lock_guard guard(lock);
  auto found = (*rooms)[name].lock();
  if (!found) {
    (*rooms)[name] = found = std::make_shared<Room>(size);
  }
  if (found->size != size) {
    throw std::runtime_error("the group " + name + " has " + std::to_string(found->size) + " ranks, not " +
                             std::to_string(size));
  }
  return found;
}

class Local : public Transport {
 public:
  Local(std::shared_ptr<Room> room, int rank, Limit limit) : room_(std::move(room)), rank_(rank), limit_(limit) {
    room_->join(rank);
  }
  ~Local() override { room_->leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return room_->size; }

  void all_sum(const float* in, void* out, cpu::Type type, int64_t n) override {
    const int64_t bytes = n * int64_t(sizeof(float));
    sums_.resize(size_t(std::min(n, kSummed)));
    room_->meet(rank_, limit_, {"all_sum", bytes, reinterpret_cast<const char*>(in)}, [&](const auto& offers) {
      for (int64_t begin = 0; begin < n; begin += kSummed) {
        const int64_t count = std::min(n - begin, kSummed);
        const auto of = [&](size_t r) { return reinterpret_cast<const float*>(offers[r].in) + begin; };
        std::copy_n(of(0), count, sums_.data());
        for (size_t r = 1; r < offers.size(); r++) {
          const float* more = of(r);
          for (int64_t i = 0; i < count; i++) {
            sums_[size_t(i)] += more[i];
          }
        }
        round_sums(sums_.data(), static_cast<char*>(out) + size_t(begin) * sum_size(type), type, count);
      }
    });
  }

  void all_gather(const char* in, char* out, int64_t bytes) override {
    room_->meet(rank_, limit_, {"all_gather", bytes, in}, [&](const auto& offers) {
      for (size_t r = 0; r < offers.size(); r++) {
        std::memcpy(out + int64_t(r) * bytes, offers[r].in, size_t(bytes));
      }
    });
  }

  void send(const char* in, int64_t bytes, int to) override { room_->send(rank_, to, limit_, {"send", bytes, in}); }

  void receive(char* out, int64_t bytes, int from) override { room_->receive(from, rank_, limit_, out, bytes); }

 private:
  std::shared_ptr<Room> room_;
  int rank_;
  Limit limit_;
  std::vector<float> sums_;
};

}  // namespace

std::shared_ptr<Transport> join_local(const std::string& name, int rank, int size, Limit limit) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw std::invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(size) + " ranks");
  }
  return std::make_shared<Local>(room(name, size), rank, limit);
}

}  // namespace ingot
