"""BatchPlugin: any scheduler and any runtime as a plugin, with the job directory and the runner that lives in it."""
