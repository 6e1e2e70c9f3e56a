/// Host code of Thrust and CUB, which make many runtime queries before they launch.

#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include <cstdio>

int main()
{
    constexpr int count = 5000;
    thrust::device_vector<int> values(count);
    thrust::sequence(values.begin(), values.end());
    const int sum = thrust::reduce(values.begin(), values.end());
    thrust::sort(values.begin(), values.end(), thrust::greater<int>());
    const int first = values[0];
    const int last = values[count - 1];
    thrust::inclusive_scan(values.begin(), values.end(), values.begin());
    const int total = values[count - 1];
    std::printf("sum %d, first %d, last %d, scanned %d\n", sum, first, last, total);
    return sum == count * (count - 1) / 2 && first == count - 1 && last == 0 && total == sum ? 0 : 1;
}
