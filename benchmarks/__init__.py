"""Our costs against those of other tools, both sides measured in one run."""
