// Gathered products: each row is multiplied by the matrix of the expert that was chosen for it.
#include <atomic>

#include "cpu/matmul/work.h"

namespace ingot::cpu {

namespace {

// The rows sorted by expert. A group is the rows of one expert: a range of order.
struct Groups {
  struct Group {
    uint32_t expert;
    int64_t first, last;  // indices into order
    int64_t rows() const { return last - first; }
  };

  Groups(const uint32_t* expert, int64_t rows) : order(size_t(rows)) {
    std::vector<uint64_t> keys(order.size());
    for (size_t i = 0; i < keys.size(); i++) {
      keys[i] = uint64_t(expert[i]) << 32 | i;
    }
    std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); i++) {
      const auto e = uint32_t(keys[i] >> 32);
      order[i] = uint32_t(keys[i]);
      if (i == 0 || e != all.back().expert) {
        all.push_back({e, int64_t(i), int64_t(i)});
      }
      all.back().last++;
    }
  }

  std::vector<uint32_t> order;
  std::vector<Group> all;
};

// One gathered product. The rows of each group are packed on their own, so that a group is an ordinary matrix product.
class Gather {
 public:
  Gather(const Gathered& g, const Groups& groups, bool fast) : g_(g), groups_(groups), acts_(groups.all.size()) {
    const Weights& w = g.weights;
    padded_ = (w.columns + kStep - 1) / kStep * kStep;
    row_scales_ = padded_ / layout_for(w, g.type, 1, fast).block;
    for (size_t i = 0; i < acts_.size(); i++) {
      const int64_t rows = groups.all[i].rows();
      acts_[i] = {.layout = layout_for(w, g.type, rows, fast), .rows = rows, .columns = padded_};
    }
    codes_ = size_t(w.rows * w.row_bytes());
    if (w.format != Format::plain) {
      scales_ = size_t(w.rows * w.groups() * w.scale_bytes());
    }
  }

  // The sizes of the buffers that set_buffers takes: packed activations, and their scales, sums and corrections.
  size_t bytes() const { return size_t(g_.rows * padded_) * 4; }
  size_t floats() const { return size_t(g_.rows * row_scales_) * 3; }
  void set_buffers(uint8_t* bytes, float* floats) {
    for (size_t i = 0; i < acts_.size(); i++) {
      const int64_t first = groups_.all[i].first;
      acts_[i].data = bytes + size_t(first * padded_) * 4;
      acts_[i].scales = floats + first * row_scales_;
      acts_[i].sums = floats + (g_.rows + first) * row_scales_;
      acts_[i].corrections = reinterpret_cast<int32_t*>(floats + (2 * g_.rows + first) * row_scales_);
    }
  }

  // Packs the rows of one group.
  void pack(size_t group) const {
    const Activations& a = acts_[group];
    const int64_t at = groups_.all[group].first;
    const int block = rows_per_panel(a.layout);
    for (int64_t m = 0; m < a.rows; m += block) {
      pack_panel(a, int(std::min<int64_t>(block, a.rows - m)), m, g_.weights.columns, g_.type,
                    [&](int r) { return g_.x[groups_.order[size_t(at + m + r)]]; });
    }
  }

  // Packs the rows of all groups.
  void pack() {
    // If all groups consist of the same row (one token with several experts), it is packed once.
    const void* x = g_.x[0];
    if (int64_t(acts_.size()) == g_.rows && std::all_of(g_.x, g_.x + g_.rows, [&](const void* p) { return p == x; })) {
      std::fill(acts_.begin() + 1, acts_.end(), acts_[0]);
      return pack(0);
    }
    const auto count = int64_t(acts_.size());
    parallel(count, std::max<int64_t>(1, kMinPackElements * count / (padded_ * g_.rows)),
             [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; i++) {
        pack(size_t(i));
      }
    });
  }

  // Bytes of the codes of all groups.
  int64_t weight_bytes() const { return int64_t(codes_ * acts_.size()); }

  // Adds the ranges of a group to the partition, under the given product number.
  void add_ranges(Partition& partition, int product, size_t group) const {
    partition.add(product, g_.weights, acts_[group].rows, acts_[group].layout);
  }

  // Computes one range of a group.
  void multiply(size_t group, const Range& r) const {
    const auto& [expert, at, last] = groups_.all[group];
    Weights w = g_.weights;
    w.codes += codes_ * expert;
    w.scales = static_cast<const uint8_t*>(w.scales) + scales_ * expert;
    w.biases = w.biases ? static_cast<const uint8_t*>(w.biases) + scales_ * expert : nullptr;
    auto row = [&, at = at](int64_t m) { return g_.y[groups_.order[size_t(at + m)]]; };
    multiply_range(w, acts_[group], r.n0, r.n1, r.m0, r.m1, Results<decltype(row)>{g_.type, nullptr, row});
  }

 private:
  const Gathered& g_;
  const Groups& groups_;
  std::vector<Activations> acts_;
  int64_t padded_ = 0, row_scales_ = 0;  // padded columns; scales per row of activations
  size_t codes_ = 0, scales_ = 0;        // bytes of one matrix's codes and scales
};

// Gate opens when a group's first product is complete and the rows of its second product are packed.
struct Gate {
  std::atomic<int> left{0};  // ranges of the first product that are not complete
  std::atomic<bool> open{false};
};

}  // namespace

void multiply_gathered(const Gathered& g, bool fast) {
  if (g.rows == 0) {
    return;
  }
  const Groups groups(g.expert, g.rows);
  Gather gather(g, groups, fast);
  gather.set_buffers(scratch<uint8_t>(kData, gather.bytes()), scratch<float>(kScales, gather.floats()));
  gather.pack();
  auto& ranges = all_ranges();
  Partition partition(gather.weight_bytes(), ranges);
  for (size_t i = 0; i < groups.all.size(); i++) {
    gather.add_ranges(partition, int(i), i);
  }
  parallel(int64_t(ranges.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) {
      gather.multiply(size_t(ranges[size_t(i)].product), ranges[size_t(i)]);
    }
  });
}

void multiply_gathered(const Gathered& first, const std::function<void(int64_t)>& between, const Gathered& second,
                       bool fast) {
  if (first.rows == 0) {
    return;
  }
  const Groups groups(first.expert, first.rows);
  Gather a(first, groups, fast), b(second, groups, fast);
  auto bytes = scratch<uint8_t>(kData, a.bytes() + b.bytes());
  auto floats = scratch<float>(kScales, a.floats() + b.floats());
  a.set_buffers(bytes, floats);
  b.set_buffers(bytes + a.bytes(), floats + a.floats());
  a.pack();
  // The team takes ranges in order. When a thread takes a range of a second product, all ranges of the first products
  // are complete or running, so that waiting for a gate cannot deadlock.
  const size_t count = groups.all.size();
  auto& ranges = all_ranges();
  Partition partition(a.weight_bytes() + b.weight_bytes(), ranges);
  std::vector<Gate> gates(count);
  for (size_t i = 0; i < count; i++) {
    const auto before = ranges.size();
    a.add_ranges(partition, int(i), i);
    gates[i].left = int(ranges.size() - before);
  }
  for (size_t i = 0; i < count; i++) {
    b.add_ranges(partition, int(count + i), i);
  }
  std::atomic<bool> failed{false};
  auto multiply_part = [&](const Range& r) {
    const size_t i = size_t(r.product) % count;
    Gate& gate = gates[i];
    if (size_t(r.product) >= count) {
      Team::instance().wait([&] {
        return gate.open.load(std::memory_order_acquire) || failed.load(std::memory_order_acquire);
      });
      return b.multiply(i, r);
    }
    a.multiply(i, r);
    if (gate.left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      for (int64_t row = groups.all[i].first; row < groups.all[i].last; row++) {
        between(groups.order[size_t(row)]);
      }
      b.pack(i);
      gate.open.store(true, std::memory_order_release);
    }
  };
  parallel(int64_t(ranges.size()), 1, [&](int64_t begin, int64_t end) {
    try {
      for (int64_t i = begin; i < end; i++) {
        multiply_part(ranges[size_t(i)]);
      }
    } catch (...) {  // such as no memory for scratch: release the threads that wait for a gate
      failed.store(true, std::memory_order_release);
      throw;
    }
  });
}

void multiply_across(const Gathered& g) {
  if (g.rows == 0) {
    return;
  }
  const Groups groups(g.expert, g.rows);
  struct Piece {
    uint32_t expert;
    int64_t first;
    int rows;
  };
  std::vector<Piece> pieces;
  for (const auto& group : groups.all) {
    for (int64_t m = group.first; m < group.last; m += kAcrossRows) {
      pieces.push_back({group.expert, m, int(std::min<int64_t>(kAcrossRows, group.last - m))});
    }
  }
  const Weights& w = g.weights;
  const auto codes = size_t(w.rows * w.row_bytes()), scales = size_t(w.rows * w.groups() * w.scale_bytes());
  const auto count = int64_t(pieces.size());
  // A thread takes several matrices that follow each other, which are read ahead.
  const int64_t grain = std::max<int64_t>(1, count / (4 * Team::instance().size()));
  parallel(count, grain, [&](int64_t begin, int64_t end) {
    const auto& k = matmul_kernels();
    auto data = scratch<float>(kAcross, size_t(kAcrossRows * (w.rows + w.columns) + across_work(w)));
    for (int64_t i = begin; i < end; i++) {
      const auto& [expert, first, rows] = pieces[size_t(i)];
      Weights one = w;
      one.codes += codes * expert;
      one.scales = static_cast<const uint8_t*>(w.scales) + scales * expert;
      one.biases = w.biases ? static_cast<const uint8_t*>(w.biases) + scales * expert : nullptr;
      const float* x[kAcrossRows];
      float* y[kAcrossRows];
      float* at = data;
      for (int r = 0; r < rows; r++) {
        k.widen(g.type, g.x[groups.order[size_t(first + r)]], at, w.rows);
        x[r] = at;
        y[r] = at + w.rows;
        at += w.rows + w.columns;
      }
      k.across_product(one, x, rows, at, y);
      for (int r = 0; r < rows; r++) {
        k.narrow(g.type, y[r], g.y[groups.order[size_t(first + r)]], w.columns);
      }
    }
  });
}

}  // namespace ingot::cpu
