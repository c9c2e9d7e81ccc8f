"""What a user sees of pods does not depend on where they run: tests of the local plugin once more, on a real Slurm."""

from tests.e2e.test_logs import (
    test_50_followers_t14,
    test_before_the_start_and_after_the_end_t15,
    test_log_options_t15,
    test_the_log_before_a_restart,
)
from tests.e2e.test_pods import (
    test_config_map_and_secret,
    test_containers_run_at_the_same_time_t07,
    test_delete_ignoring_term_is_killed_after_grace,
    test_exit_code_t06,
    test_graceful_delete_t21,
    test_init_containers_in_order_t08,
    test_job_with_20_completions,
    test_log_follows_line_by_line_t14,
    test_missing_reference_t17,
    test_no_secret_value_is_left_anywhere,
    test_service_account_token,
)
from tests.e2e.test_workloads import (
    test_a_container_is_told_of_services_and_of_its_own_limits,
    test_a_pods_time_is_over,
    test_a_running_pods_token_is_renewed_in_place,
)

__all__ = [
    "test_50_followers_t14",
    "test_a_container_is_told_of_services_and_of_its_own_limits",
    "test_a_pods_time_is_over",
    "test_a_running_pods_token_is_renewed_in_place",
    "test_before_the_start_and_after_the_end_t15",
    "test_config_map_and_secret",
    "test_containers_run_at_the_same_time_t07",
    "test_delete_ignoring_term_is_killed_after_grace",
    "test_exit_code_t06",
    "test_graceful_delete_t21",
    "test_init_containers_in_order_t08",
    "test_job_with_20_completions",
    "test_log_follows_line_by_line_t14",
    "test_log_options_t15",
    "test_missing_reference_t17",
    "test_no_secret_value_is_left_anywhere",
    "test_service_account_token",
    "test_the_log_before_a_restart",
]
