// SPDX-License-Identifier: Apache-2.0
#include "nn/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "tests/support/random_batch.h"

// Every kernel of every instruction set that this machine has, against plain loops in double.

namespace rudderfish::nn {
namespace {

using Floats = std::vector<float>;

class KernelTest : public testing::TestWithParam<Isa> {
 protected:
  Floats Random(int n) {
    Floats values(static_cast<size_t>(n));
    for (float& value : values) value = static_cast<float>(rng_.Normal());
    return values;
  }

  std::vector<int32_t> Begins(std::initializer_list<int> sizes) {
    std::vector<int32_t> begin{0};
    for (const int size : sizes) begin.push_back(begin.back() + size);
    return begin;
  }

  const Kernels& k_ = SelectKernels(GetParam());
  Rng rng_{17};
};

void ExpectNear(const Floats& actual, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

size_t At(int row, int stride, int column) { return static_cast<size_t>(row * stride + column); }

struct ProductCase {
  int m, n, k;
};

TEST_P(KernelTest, ProductEqualsPlainLoops) {
  const ProductCase cases[] = {{1, 16, 1},  {1, 32, 48},  {2, 48, 3},   {3, 16, 17},
                               {5, 32, 0},  {6, 80, 9},   {7, 64, 33},  {11, 32, 2},
                               {12, 16, 7}, {13, 32, 31}, {20, 32, 48}, {23, 64, 5},
                               {24, 32, 8}, {25, 48, 13}, {37, 96, 21}, {61, 32, 29}};
  for (const ProductCase& c : cases) {
    for (const Initial initial : {Initial::kZero, Initial::kKeep, Initial::kBias}) {
      for (const Activation activation : {Activation::kNone, Activation::kRelu}) {
        SCOPED_TRACE(testing::Message()
                     << c.m << "x" << c.n << "x" << c.k << " initial " << int(initial));
        const int a_row = c.k + 3, b_row = c.n + 5, c_row = c.n + 1;
        const Floats a = Random(c.m * a_row + 1), b = Random(c.k * b_row + 1), bias = Random(c.n);
        Floats out = Random(c.m * c_row);
        std::vector<double> expected(out.begin(), out.end());
        for (int i = 0; i < c.m; ++i) {
          for (int j = 0; j < c.n; ++j) {
            double sum = initial == Initial::kKeep ? out[At(i, c_row, j)] : 0;
            if (initial == Initial::kBias) sum = bias[static_cast<size_t>(j)];
            for (int k = 0; k < c.k; ++k)
              sum += double{a[At(i, a_row, k)]} * double{b[At(k, b_row, j)]};
            expected[At(i, c_row, j)] = activation == Activation::kRelu ? std::max(sum, 0.0) : sum;
          }
        }
        k_.multiply({.m = c.m,
                     .n = c.n,
                     .k = c.k,
                     .a = a.data(),
                     .a_row = a_row,
                     .b = b.data(),
                     .b_row = b_row,
                     .c = out.data(),
                     .c_row = c_row,
                     .bias = bias.data(),
                     .initial = initial,
                     .activation = activation});
        ExpectNear(out, expected, 1e-5);
      }
    }
  }
}

TEST_P(KernelTest, ProductReadsATransposedMatrixByItsStrides) {
  for (const int rows : {1, 7, 40}) {
    const int k_in = 19, n = 32;
    const Floats x = Random(rows * k_in), dy = Random(rows * n);
    Floats dw = Random(k_in * n);
    std::vector<double> expected(dw.begin(), dw.end());
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i < k_in; ++i) {
        for (int j = 0; j < n; ++j)
          expected[At(i, n, j)] += double{x[At(r, k_in, i)]} * double{dy[At(r, n, j)]};
      }
    }
    k_.multiply({.m = k_in,
                 .n = n,
                 .k = rows,
                 .a = x.data(),
                 .a_row = 1,
                 .a_inner = k_in,
                 .b = dy.data(),
                 .b_row = n,
                 .c = dw.data(),
                 .c_row = n,
                 .initial = Initial::kKeep});
    ExpectNear(dw, expected, 1e-5);
  }
}

TEST_P(KernelTest, ProductRowDependsOnNothingElseInTheBatchToTheBit) {
  const int n = 64, k = 37, rows = 53;
  const Floats a = Random(rows * k), b = Random(k * n);
  Floats all(static_cast<size_t>(rows * n));
  k_.multiply({.m = rows,
               .n = n,
               .k = k,
               .a = a.data(),
               .a_row = k,
               .b = b.data(),
               .b_row = n,
               .c = all.data(),
               .c_row = n});
  for (int first = 0; first < rows; first += 5) {
    for (const int count : {1, 3, 12, 13}) {
      const int m = std::min(count, rows - first);
      Floats some(static_cast<size_t>(m * n));
      k_.multiply({.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data() + first * k,
                   .a_row = k,
                   .b = b.data(),
                   .b_row = n,
                   .c = some.data(),
                   .c_row = n});
      EXPECT_EQ(std::memcmp(some.data(), all.data() + first * n, some.size() * sizeof(float)), 0);
    }
  }
}

TEST_P(KernelTest, NotANumberPassesAProductAndItsRelu) {
  const Floats a = {std::numeric_limits<float>::quiet_NaN()}, b(16, 1.0F);
  Floats out(16);
  k_.multiply({.m = 1,
               .n = 16,
               .k = 1,
               .a = a.data(),
               .a_row = 1,
               .b = b.data(),
               .b_row = 16,
               .c = out.data(),
               .c_row = 16,
               .activation = Activation::kRelu});
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST_P(KernelTest, TransposeSwapsRowsAndColumns) {
  const Floats a = Random(7 * 48);
  Floats t(a.size());
  k_.transpose(7, 48, a.data(), t.data());
  for (int i = 0; i < 7; ++i) {
    for (int j = 0; j < 48; ++j) EXPECT_EQ(t[At(j, 7, i)], a[At(i, 48, j)]);
  }
}

TEST_P(KernelTest, ColumnSumsAreAdded) {
  for (const int rows : {0, 1, 2, 9}) {
    const int width = 48, stride = 50;
    const Floats x = Random(rows * stride), weights = Random(rows);
    Floats plain = Random(width), weighted = plain;
    std::vector<double> expected(plain.begin(), plain.end()), expected_weighted = expected;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < width; ++j) {
        expected[static_cast<size_t>(j)] += x[At(i, stride, j)];
        expected_weighted[static_cast<size_t>(j)] +=
            double{weights[static_cast<size_t>(i)]} * x[At(i, stride, j)];
      }
    }
    k_.column_sums(rows, width, x.data(), stride, plain.data());
    k_.weighted_column_sums(rows, width, weights.data(), x.data(), stride, weighted.data());
    ExpectNear(plain, expected, 1e-5);
    ExpectNear(weighted, expected_weighted, 1e-5);
  }
}

TEST_P(KernelTest, SegmentSumsAndGatheredSamplesAreEachOthersTranspose) {
  const auto begin = Begins({3, 0, 1, 5});
  const int width = 32, rows = begin.back(), segments = 4;
  const Floats x = Random(rows * width), source = Random(segments * width);
  Floats sums(source.size()), spread(x.size());
  std::vector<Ends> ends(static_cast<size_t>(rows));
  std::vector<double> expected(sums.size());
  for (int s = 0; s < segments; ++s) {
    for (int i = begin[s]; i < begin[s + 1]; ++i) {
      ends[size_t(i)].sample = s;
      for (int j = 0; j < width; ++j) expected[At(s, width, j)] += x[At(i, width, j)];
    }
  }
  k_.segment_sums(segments, begin.data(), width, x.data(), sums.data());
  k_.gather_samples(rows, width, ends.data(), source.data(), spread.data());
  ExpectNear(sums, expected, 1e-5);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < width; ++j) {
      EXPECT_EQ(spread[At(i, width, j)], source[At(ends[size_t(i)].sample, width, j)]);
    }
  }
}

TEST_P(KernelTest, ClearAndReluBackwardTouchOnlyTheirColumns) {
  const int rows = 3, width = 16, stride = 20;
  const Floats y = Random(rows * stride), before = Random(rows * stride);
  Floats cleared = before, masked = before;
  k_.clear(rows, width, cleared.data(), stride);
  k_.relu_backward(rows, width, y.data(), stride, masked.data(), stride);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < stride && At(i, stride, j) < before.size(); ++j) {
      const size_t at = At(i, stride, j);
      EXPECT_EQ(cleared[at], j < width ? 0 : before[at]);
      EXPECT_EQ(masked[at], j < width && y[at] <= 0 ? 0 : before[at]);
    }
  }
}

TEST_P(KernelTest, GatherAndScatterFollowTheEnds) {
  const int h = 32, nodes = 3, workloads = 2, rows = 4;
  const Ends ends[rows] = {{0, 2, 1, 0}, {2, 2, 0, 0}, {1, 0, 1, 1}, {3, 3, 2, 1}};
  const Floats pairs = Random((nodes + 1) * 2 * h), table = Random((workloads + 1) * h),
               samples = Random(2 * h);
  const Floats d = Random(rows * h);
  Floats out(static_cast<size_t>(rows * h)), dpairs = pairs, dtable = table;
  std::vector<double> expected(out.size()), expected_pairs(pairs.begin(), pairs.end());
  std::vector<double> expected_table(table.begin(), table.end());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < h; ++j) {
      expected[At(i, h, j)] = double{pairs[At(ends[i].from, 2 * h, j)]} +
                              pairs[At(ends[i].to, 2 * h, h + j)] +
                              table[At(ends[i].workload, h, j)] + samples[At(ends[i].sample, h, j)];
      expected_pairs[At(ends[i].from, 2 * h, j)] += d[At(i, h, j)];
      expected_pairs[At(ends[i].to, 2 * h, h + j)] += d[At(i, h, j)];
      expected_table[At(ends[i].workload, h, j)] += d[At(i, h, j)];
    }
  }
  k_.gather(rows, h, ends, pairs.data(), table.data(), samples.data(), out.data());
  k_.scatter(rows, h, ends, d.data(), dpairs.data(), dtable.data());
  ExpectNear(out, expected, 1e-6);
  ExpectNear(dpairs, expected_pairs, 1e-6);
  ExpectNear(dtable, expected_table, 1e-6);
}

TEST_P(KernelTest, EdgesCarryWeightedRowsBothWays) {
  const int width = 32, row_a = 40, row_b = 64;
  const Edge edges[] = {{0, 1, 0.5F}, {2, 1, -2.0F}, {0, 0, 0.25F}};
  const Floats a = Random(3 * row_a), b = Random(2 * row_b);
  Floats to_a = a, to_b = b;
  std::vector<double> expected_a(a.begin(), a.end()), expected_b(b.begin(), b.end());
  for (const Edge& edge : edges) {
    for (int j = 0; j < width; ++j) {
      expected_a[At(edge.a, row_a, j)] += double{edge.weight} * b[At(edge.b, row_b, j)];
      expected_b[At(edge.b, row_b, j)] += double{edge.weight} * a[At(edge.a, row_a, j)];
    }
  }
  k_.edges_to_a(3, edges, width, b.data(), row_b, to_a.data(), row_a);
  k_.edges_to_b(3, edges, width, a.data(), row_a, to_b.data(), row_b);
  ExpectNear(to_a, expected_a, 1e-6);
  ExpectNear(to_b, expected_b, 1e-6);
}

TEST_P(KernelTest, PoolTakesMeanAndFirstMaximumOfEachSegment) {
  const auto begin = Begins({4, 0, 1, 3});
  const int width = 32, segments = 4, out_row = 2 * width + 7;
  Floats x = Random(begin.back() * width);
  x[At(2, width, 5)] = x[At(1, width, 5)] = 9;  // A tie: the first of the two counts.
  Floats out(static_cast<size_t>(segments * out_row), -1.0F);
  std::vector<int32_t> argmax(static_cast<size_t>(segments * width), -1);
  k_.pool(segments, begin.data(), width, x.data(), out.data(), out_row, argmax.data());
  for (int s = 0; s < segments; ++s) {
    const int rows = begin[s + 1] - begin[s];
    for (int j = 0; j < width; ++j) {
      double sum = 0, largest = rows == 0 ? 0 : -1e9;
      int which = 0;
      for (int i = 0; i < rows; ++i) {
        const double value = x[At(begin[s] + i, width, j)];
        sum += value;
        if (value > largest) largest = value, which = i;
      }
      EXPECT_NEAR(out[At(s, out_row, j)], rows == 0 ? 0 : sum / rows, 1e-6);
      EXPECT_EQ(out[At(s, out_row, width + j)], static_cast<float>(largest));
      EXPECT_EQ(argmax[At(s, width, j)], which);
    }
  }
  EXPECT_EQ(argmax[5], 1);
}

TEST_P(KernelTest, PoolBackwardIsTheGradientOfPoolingAfterARelu) {
  const auto begin = Begins({4, 0, 2});
  const int width = 16, segments = 3, rows = begin.back(), dpool_row = 2 * width + 3;
  Floats y = Random(rows * width);
  for (float& value : y) value = std::max(value, 0.0F);
  const Floats dpool = Random(segments * dpool_row), before = Random(rows * width);
  Floats pooled(static_cast<size_t>(segments * 2 * width)), d = before;
  std::vector<int32_t> argmax(static_cast<size_t>(segments * width));
  k_.pool(segments, begin.data(), width, y.data(), pooled.data(), 2 * width, argmax.data());
  k_.pool_relu_backward(segments, begin.data(), width, y.data(), dpool.data(), dpool_row,
                        argmax.data(), d.data());
  for (int s = 0; s < segments; ++s) {
    for (int i = begin[s]; i < begin[s + 1]; ++i) {
      for (int j = 0; j < width; ++j) {
        const size_t at = At(i, width, j);
        double expected =
            before[at] + double{dpool[At(s, dpool_row, j)]} / (begin[s + 1] - begin[s]);
        if (argmax[At(s, width, j)] == i - begin[s]) expected += dpool[At(s, dpool_row, width + j)];
        EXPECT_NEAR(d[at], y[at] > 0 ? expected : 0, 1e-5);
      }
    }
  }
}

TEST_P(KernelTest, RowDotsEqualPlainLoopsAndIgnoreTheirNeighbours) {
  const int rows = 11, x_width = 32, z_width = 48;
  const Floats x = Random(rows * x_width), z = Random(rows * z_width), w = Random(x_width),
               v = Random(z_width);
  Floats out(rows), alone(rows), one_part(rows);
  std::vector<double> expected(rows), expected_one(rows);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < x_width; ++j)
      expected_one[i] += double{x[At(i, x_width, j)]} * w[static_cast<size_t>(j)];
    expected[i] = expected_one[i] + 0.5;
    for (int j = 0; j < z_width; ++j)
      expected[i] += double{z[At(i, z_width, j)]} * v[static_cast<size_t>(j)];
    k_.row_dots(1, 0.5F, x_width, &x[At(i, x_width, 0)], w.data(), z_width, &z[At(i, z_width, 0)],
                v.data(), &alone[i]);
  }
  k_.row_dots(rows, 0.5F, x_width, x.data(), w.data(), z_width, z.data(), v.data(), out.data());
  k_.row_dots(rows, 0, x_width, x.data(), w.data(), 0, nullptr, nullptr, one_part.data());
  ExpectNear(out, expected, 1e-5);
  ExpectNear(one_part, expected_one, 1e-5);
  EXPECT_EQ(out, alone);
}

TEST_P(KernelTest, DotBackwardIsTheMaskedOuterProduct) {
  const int rows = 3, width = 32;
  const Floats p = Random(rows), q = Random(rows), w = Random(width), v = Random(width),
               y = Random(rows * width);
  Floats one(y.size()), two(y.size());
  k_.dot_relu_backward(rows, width, p.data(), w.data(), nullptr, nullptr, y.data(), one.data());
  k_.dot_relu_backward(rows, width, p.data(), w.data(), q.data(), v.data(), y.data(), two.data());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < width; ++j) {
      const double first = y[At(i, width, j)] > 0 ? double{p[i]} * w[j] : 0;
      const double second = y[At(i, width, j)] > 0 ? double{q[i]} * v[j] : 0;
      EXPECT_NEAR(one[At(i, width, j)], first, 1e-6);
      EXPECT_NEAR(two[At(i, width, j)], first + second, 1e-6);
    }
  }
}

TEST_P(KernelTest, ExponentialIsExactToTwoUnitsInTheLastPlace) {
  Floats x;
  for (double v = -87; v < 88; v += 0.0137) x.push_back(static_cast<float>(v));
  Floats out(x.size());
  k_.exponentials(static_cast<int>(x.size()), x.data(), out.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(double{x[i]});
    EXPECT_NEAR(out[i] / expected, 1, 2.4e-7) << x[i];
  }
  const Floats far = {-1e30F, -200, 0};
  Floats ends(3);
  k_.exponentials(3, far.data(), ends.data());
  EXPECT_EQ(ends, (Floats{0, 0, 1}));
}

TEST_P(KernelTest, LogSoftmaxNormalisesAndKeepsTheForbiddenOut) {
  for (const int n : {1, 2, 15, 16, 17, 40}) {
    Floats scores = Random(n);
    for (int i = 0; i < n; ++i) scores[i] = i % 3 == 1 ? kForbidden : 20 * scores[i];
    double total = 0;
    for (const float score : scores) total += score > kForbidden ? std::exp(double{score}) : 0;
    Floats log_p(scores.size()), p(scores.size());
    k_.log_softmax(n, scores.data(), log_p.data(), p.data());
    for (size_t i = 0; i < scores.size(); ++i) {
      if (scores[i] > kForbidden) {
        EXPECT_NEAR(log_p[i], scores[i] - std::log(total), 2e-5);
        EXPECT_NEAR(p[i], std::exp(double{scores[i]}) / total, 1e-6);
      } else {
        EXPECT_EQ(log_p[i], kForbidden);
        EXPECT_EQ(p[i], 0);
      }
    }
  }
}

TEST_P(KernelTest, SumOfSquaresLosesNoDigitsOnLongVectors) {
  for (const int n : {0, 5, 16, 1024, 20011}) {
    const Floats x = Random(n);
    double expected = 0;
    for (const float value : x) expected += double{value} * double{value};
    EXPECT_NEAR(k_.sum_of_squares(x.size(), x.data()), expected, 1e-6 * (1 + expected));
  }
}

TEST_P(KernelTest, PeakOfRegistersIsAboveEveryProduct) {
  EXPECT_GT(MeasureFmaPeakGflops(k_, 1), 0.1);
  float sink[3] = {0.5F, 0.5F, 0};
  EXPECT_GT(k_.burn(1000, sink), 1000);
  EXPECT_TRUE(std::isfinite(sink[2]));
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, KernelTest, testing::ValuesIn(HostIsas()), [](const auto& info) {
  return std::string(SelectKernels(info.param).name);
});

TEST(Kernels, BestIsTheWidestThatIsSupported) { EXPECT_EQ(BestKernels().isa, HostIsas().back()); }

}  // namespace
}  // namespace rudderfish::nn
